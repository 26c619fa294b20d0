-- Queries as values: a total, a number of each, a row of a table by its key, a row that should be the only one.

CREATE TABLE orders (
  id BIGINT,
  who STRING,
  amount INT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE users (
  who STRING,
  city STRING,
  PRIMARY KEY (who) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users', 'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE phones (
  who STRING,
  phone STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'phones', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE shown (
  id BIGINT,
  city STRING,
  largest INT,
  same BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'shown', 'format' = 'changelog-json'
);

CREATE TABLE calls (
  id BIGINT,
  phone STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'calls', 'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO shown
SELECT
  id,
  (SELECT city FROM users AS u WHERE u.who = o.who),
  (SELECT MAX(amount) FROM orders),
  (SELECT COUNT(*) FROM orders AS x WHERE x.who = o.who AND x.id <> o.id)
FROM orders AS o;

INSERT INTO calls
SELECT id, (SELECT phone FROM phones AS p WHERE p.who = o.who) FROM orders AS o;
END;
