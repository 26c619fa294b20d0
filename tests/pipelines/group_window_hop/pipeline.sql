-- The older form of windows: HOP in GROUP BY, with HAVING.

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
  total BIGINT,
  starts TIMESTAMP(3),
  ends TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'revenue',
  'format' = 'json'
);

INSERT INTO revenue
SELECT SUM(amount), HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND), HOP_END(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)
FROM orders
GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)
HAVING COUNT(*) > 1;
