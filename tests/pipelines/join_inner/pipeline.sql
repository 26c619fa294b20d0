-- A regular join of two streams of rows: each pair once, whichever side comes first.

CREATE TABLE orders (
  id BIGINT,
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE users (
  user_id STRING,
  city STRING,
  least BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE enriched (
  id BIGINT,
  city STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'enriched',
  'format' = 'json'
);

INSERT INTO enriched
SELECT o.id, u.city, o.amount
FROM orders AS o
JOIN users AS u ON o.user_id = u.user_id AND o.amount >= u.least;
