-- Changes as Oracle GoldenGate writes them, without the rows of a city, written as Maxwell sends changes.

CREATE TABLE users (
  id BIGINT,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset', 'format' = 'ogg-json'
);

CREATE TABLE others (
  id BIGINT,
  city STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'others', 'format' = 'maxwell-json'
);

INSERT INTO others
SELECT id, city FROM users WHERE city <> 'Oslo';
