-- Each side of a join forgets after a time of its own.

CREATE TABLE orders (
  id BIGINT,
  user_id STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE users (
  user_id STRING,
  city STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE enriched (
  id BIGINT,
  city STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'enriched',
  'format' = 'json'
);

INSERT INTO enriched
SELECT /*+ STATE_TTL('o' = '1 h', 'u' = '3 h') */ o.id, u.city
FROM orders AS o
JOIN users AS u ON o.user_id = u.user_id;
