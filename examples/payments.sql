-- Which orders were paid, how soon, and how that compares with the payments of the hour before.

CREATE TABLE orders (
  order_id BIGINT,
  amount DECIMAL(10, 2),
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE payments (
  order_id BIGINT,
  method STRING,
  millis BIGINT,
  paid_at AS CAST(TO_TIMESTAMP_LTZ(millis, 3) AS TIMESTAMP(3)),
  WATERMARK FOR paid_at AS paid_at - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'payments',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE paid (
  order_id BIGINT,
  method STRING,
  amount DECIMAL(10, 2),
  waited_seconds INT,
  largest_of_the_hour DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka',
  'topic' = 'paid',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'format' = 'json'
);

CREATE TEMPORARY VIEW matched AS
SELECT o.order_id, p.method, o.amount, TIMESTAMPDIFF(SECOND, o.ts, p.paid_at) AS waited_seconds, p.paid_at
FROM orders AS o
JOIN payments AS p
  ON o.order_id = p.order_id
  AND p.paid_at BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR;

INSERT INTO paid
SELECT
  order_id,
  method,
  amount,
  waited_seconds,
  MAX(amount) OVER (
    PARTITION BY method
    ORDER BY paid_at
    RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW
  )
FROM matched;
