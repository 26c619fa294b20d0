-- The older form of windows: TUMBLE in GROUP BY.

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE revenue (
  user_id STRING,
  total BIGINT,
  starts TIMESTAMP(3),
  ends TIMESTAMP(3),
  last_moment TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'revenue',
  'format' = 'json'
);

INSERT INTO revenue
SELECT
  user_id,
  SUM(amount),
  TUMBLE_START(ts, INTERVAL '1' MINUTE),
  TUMBLE_END(ts, INTERVAL '1' MINUTE),
  TUMBLE_ROWTIME(ts, INTERVAL '1' MINUTE)
FROM orders
GROUP BY user_id, TUMBLE(ts, INTERVAL '1' MINUTE);
