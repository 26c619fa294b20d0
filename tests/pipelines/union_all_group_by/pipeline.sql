-- A group over a UNION ALL takes its rows from both inputs.

CREATE TABLE web (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'web', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE shop (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'shop', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE sales (
  user_id STRING,
  total BIGINT,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'sales',
  'format' = 'debezium-json'
);

INSERT INTO sales
SELECT user_id, SUM(amount)
FROM (SELECT user_id, amount FROM web UNION ALL SELECT user_id, amount FROM shop)
GROUP BY user_id;
