-- Upsert topics in and out: the last row of a key counts, a null value deletes, a repeated row changes nothing.

CREATE TABLE users (
  user_id STRING,
  city STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE cities (
  city STRING,
  users BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'cities',
  'key.format' = 'json', 'value.format' = 'json'
);

INSERT INTO cities
SELECT city, COUNT(*) FROM users GROUP BY city;
