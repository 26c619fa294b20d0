-- What the people of each city have spent. A user who moves takes earlier orders along: both cities are corrected.

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
  'topic' = 'users',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE cities (
  city STRING,
  orders BIGINT,
  spent DECIMAL(38, 2),
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'cities',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'format' = 'changelog-json'
);

INSERT INTO cities
SELECT u.city, COUNT(*), SUM(o.amount)
FROM orders AS o
JOIN users AS u ON o.user_id = u.user_id
GROUP BY u.city;
