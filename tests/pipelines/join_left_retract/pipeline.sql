-- A left join over inputs that change: padded until the first match, padded again when the last one goes.

CREATE TABLE orders (
  id BIGINT,
  user_id STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE users (
  user_id STRING,
  city STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE enriched (
  id BIGINT,
  user_id STRING,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'enriched',
  'format' = 'debezium-json'
);

INSERT INTO enriched
SELECT o.id, o.user_id, u.city
FROM orders AS o
LEFT JOIN users AS u ON o.user_id = u.user_id;
