-- Orders beside the users that a database keeps (change data capture), and what each city has spent. A user who moves
-- takes all earlier orders along: the old city's total is corrected, and so is the new one's.

SET 'pipeline.name' = 'spending by city';
SET 'table.exec.state.ttl' = '7 d';

CREATE TABLE orders (
  order_id BIGINT,
  user_id STRING,
  amount DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE users (
  user_id STRING,
  city STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'shop.public.users',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE cities (
  city STRING,
  users BIGINT,
  spent DECIMAL(38, 2),
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'cities',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO cities
SELECT u.city, COUNT(DISTINCT o.user_id), SUM(o.amount)
FROM orders AS o
JOIN users AS u ON o.user_id = u.user_id
GROUP BY u.city
HAVING SUM(o.amount) > 0;
