-- In processing time, too, an order is retracted with the city that it met, whatever the table holds now.

CREATE TABLE orders (
  id BIGINT,
  user_id STRING,
  `at` AS PROCTIME(),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'orders',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE users (
  user_id STRING,
  city STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE enriched (
  id BIGINT,
  city STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'enriched',
  'format' = 'changelog-json'
);

INSERT INTO enriched
SELECT o.id, u.city
FROM orders AS o
LEFT JOIN users FOR SYSTEM_TIME AS OF o.`at` AS u
  ON o.user_id = u.user_id;
