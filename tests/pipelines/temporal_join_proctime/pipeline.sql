-- In processing time each row meets what the table holds when it comes, with the changes of its own batch.

CREATE TABLE orders (
  id BIGINT,
  user_id STRING,
  `at` AS PROCTIME()
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
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
  'format' = 'json'
);

INSERT INTO enriched
SELECT o.id, u.city
FROM orders AS o
LEFT JOIN users FOR SYSTEM_TIME AS OF o.`at` AS u
  ON o.user_id = u.user_id;
