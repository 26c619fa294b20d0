-- Projection and filter, with a computed column and where Kafka kept the record.

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  price DECIMAL(10, 2),
  cost AS amount * price,
  part INT METADATA FROM 'partition' VIRTUAL,
  place BIGINT METADATA FROM 'offset' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE big_orders (
  user_id STRING,
  cost DECIMAL(30, 2),
  size STRING,
  place STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'big_orders',
  'format' = 'json'
);

INSERT INTO big_orders
SELECT UPPER(user_id), cost, CASE WHEN amount >= 10 THEN 'bulk' ELSE 'single' END, CAST(part AS STRING) || ':' || CAST(place AS STRING)
FROM orders
WHERE cost > 5 AND user_id IS NOT NULL;
