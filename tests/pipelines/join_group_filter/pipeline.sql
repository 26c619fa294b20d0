-- A chain: a join, a group over what it takes back, a filter over that. A row that moves takes its share along.

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
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE cities (
  city STRING,
  total BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'cities',
  'format' = 'debezium-json'
);

INSERT INTO cities
SELECT city, total
FROM (
  SELECT u.city, SUM(o.amount) AS total
  FROM orders AS o
  JOIN users AS u ON o.user_id = u.user_id
  GROUP BY u.city
)
WHERE total >= 10;
