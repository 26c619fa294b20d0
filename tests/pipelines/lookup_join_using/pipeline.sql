-- Columns of one name look up a table of a database: those that USING names, or all that both sides have.

CREATE TABLE orders (
  id BIGINT,
  who BIGINT,
  city STRING,
  now_ AS PROCTIME()
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE customers (
  who BIGINT,
  name STRING,
  city STRING
) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'customers'
);

CREATE TABLE named (
  who BIGINT,
  id BIGINT,
  name STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'named', 'format' = 'json'
);

CREATE TABLE at_home (
  who BIGINT,
  city STRING,
  id BIGINT,
  name STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'at_home', 'format' = 'json'
);

INSERT INTO named
SELECT who, o.id, c.name
FROM orders AS o
JOIN customers FOR SYSTEM_TIME AS OF o.now_ AS c USING (who);

INSERT INTO at_home
SELECT who, city, o.id, c.name
FROM orders AS o
NATURAL LEFT JOIN customers FOR SYSTEM_TIME AS OF o.now_ AS c;
