-- Rows whose times are near: a payment from 2 s before to 10 s after its order, bounds included.

CREATE TABLE orders (
  id BIGINT,
  user_id STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE payments (
  order_id BIGINT,
  paid BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'payments', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE paid_orders (
  id BIGINT,
  paid BIGINT,
  seconds BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'paid_orders',
  'format' = 'json'
);

INSERT INTO paid_orders
SELECT o.id, p.paid, TIMESTAMPDIFF(SECOND, o.ts, p.ts)
FROM orders AS o
JOIN payments AS p
  ON o.id = p.order_id
  AND p.ts BETWEEN o.ts - INTERVAL '2' SECOND AND o.ts + INTERVAL '10' SECOND;
