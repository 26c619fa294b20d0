-- The first and last value to arrive in each session, over retracted rows: the session answers as it closes.

CREATE TABLE parts (
  id BIGINT,
  who STRING,
  amount INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '30' SECOND,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'parts', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE ends (
  who STRING,
  starts TIMESTAMP(3),
  stops TIMESTAMP(3),
  first_amount INT,
  last_amount INT,
  last_id BIGINT,
  n BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'ends', 'format' = 'json');

INSERT INTO ends
SELECT
  who,
  SESSION_START(ts, INTERVAL '10' SECOND),
  SESSION_END(ts, INTERVAL '10' SECOND),
  FIRST_VALUE(amount),
  LAST_VALUE(amount),
  LAST_VALUE(id) FILTER (WHERE amount > 5),
  COUNT(*)
FROM parts
GROUP BY who, SESSION(ts, INTERVAL '10' SECOND);
