-- An aggregate over all rows has one row, from the first row on.

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE totals (
  n BIGINT,
  total BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'totals',
  'format' = 'changelog-json'
);

INSERT INTO totals
SELECT COUNT(*), SUM(amount) FROM orders WHERE amount > 0;
