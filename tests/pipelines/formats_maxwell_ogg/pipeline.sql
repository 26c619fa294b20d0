-- Changes of a database as Maxwell sends them, counted by city, written as Oracle GoldenGate writes changes.

CREATE TABLE users (
  id BIGINT,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset', 'format' = 'maxwell-json'
);

CREATE TABLE cities (
  city STRING,
  users BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'cities', 'format' = 'ogg-json'
);

INSERT INTO cities
SELECT city, COUNT(*) FROM users GROUP BY city;
