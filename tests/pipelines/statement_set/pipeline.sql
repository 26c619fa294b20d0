-- Two sinks of one statement set share a view: it is computed once.

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE totals (
  user_id STRING,
  total BIGINT,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'totals',
  'format' = 'debezium-json'
);

CREATE TABLE big_spenders (
  user_id STRING,
  total BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'big_spenders',
  'format' = 'changelog-json'
);

CREATE TEMPORARY VIEW per_user AS
SELECT user_id, SUM(amount) AS total FROM orders GROUP BY user_id;

EXECUTE STATEMENT SET
BEGIN
  INSERT INTO totals SELECT user_id, total FROM per_user;
  INSERT INTO big_spenders SELECT user_id, total FROM per_user WHERE total > 9;
END;
