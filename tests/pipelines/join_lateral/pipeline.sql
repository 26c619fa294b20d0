-- Queries in FROM that read what stands before them: the largest two of a group, totals also of none, rows of any condition.

CREATE TABLE users (
  id BIGINT,
  name STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users', 'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE orders (
  id BIGINT,
  user_id BIGINT,
  amount INT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE best (name STRING, amount INT, id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'best', 'format' = 'changelog-json'
);

CREATE TABLE totals (name STRING, total INT, n BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'totals', 'format' = 'changelog-json'
);

CREATE TABLE larger (id BIGINT, other BIGINT, more INT) WITH (
  'connector' = 'kafka', 'topic' = 'larger', 'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN

INSERT INTO best
SELECT u.name, t.amount, t.id
FROM users AS u, LATERAL (
  SELECT o.amount, o.id FROM orders AS o WHERE o.user_id = u.id ORDER BY o.amount DESC, o.id LIMIT 2
) AS t;

INSERT INTO totals
SELECT u.name, t.total, t.n
FROM users AS u
CROSS JOIN LATERAL (SELECT SUM(o.amount) AS total, COUNT(*) AS n FROM orders AS o WHERE o.user_id = u.id) AS t;

INSERT INTO larger
SELECT o.id, t.other, t.more
FROM orders AS o
LEFT JOIN LATERAL (
  SELECT x.id, x.amount - o.amount FROM orders AS x WHERE x.user_id = o.user_id AND x.amount > o.amount
) AS t (other, more) ON TRUE;

END;
