-- GROUP BY over a table that changes: what is retracted leaves every aggregate, the last row takes the group along.

CREATE TABLE accounts (
  id BIGINT,
  city STRING,
  balance BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'accounts', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE cities (
  city STRING,
  n BIGINT,
  total BIGINT,
  low BIGINT,
  high BIGINT,
  kinds BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'cities',
  'format' = 'debezium-json'
);

INSERT INTO cities
SELECT city, COUNT(*), SUM(balance), MIN(balance), MAX(balance), COUNT(DISTINCT balance)
FROM accounts
GROUP BY city;
