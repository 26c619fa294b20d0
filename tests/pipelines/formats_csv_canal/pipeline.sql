-- Changes of a database as Canal sends them, counted by city, written as lines of CSV with a raw key.

CREATE TABLE users (
  id BIGINT,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'canal-json'
);

CREATE TABLE cities (
  city STRING,
  users BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'cities',
  'key.format' = 'raw', 'value.format' = 'csv'
);

INSERT INTO cities
SELECT city, COUNT(*) FROM users WHERE city IS NOT NULL GROUP BY city;
