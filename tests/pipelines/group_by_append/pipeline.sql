-- GROUP BY without a window: +I for a new group, -U and +U for a changed one, nothing for the same answer.

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE totals (
  user_id STRING,
  n BIGINT,
  total BIGINT,
  mean BIGINT,
  low BIGINT,
  high BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'totals',
  'format' = 'debezium-json'
);

INSERT INTO totals
SELECT user_id, COUNT(*), SUM(amount), AVG(amount), MIN(amount), MAX(amount)
FROM orders
GROUP BY user_id;
