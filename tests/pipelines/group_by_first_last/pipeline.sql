-- The first and last value to arrive, over retracted rows: an update comes as a new row, behind all others.

CREATE TABLE parts (
  id BIGINT,
  who STRING,
  amount INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'parts', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE ends (
  who STRING,
  first_amount INT,
  last_amount INT,
  last_id BIGINT,
  n BIGINT,
  PRIMARY KEY (who) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'ends',
  'format' = 'debezium-json'
);

INSERT INTO ends
SELECT
  who,
  FIRST_VALUE(amount),
  LAST_VALUE(amount),
  LAST_VALUE(id) FILTER (WHERE amount > 5),
  COUNT(*)
FROM parts
GROUP BY who;
