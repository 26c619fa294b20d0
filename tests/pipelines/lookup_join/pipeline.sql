-- Each order meets what the database has of its customer when the order comes; what changes there later corrects nothing.

CREATE TABLE orders (
  id BIGINT,
  customer BIGINT,
  amount BIGINT,
  now_ AS PROCTIME()
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE customers (
  id BIGINT,
  name STRING,
  city STRING,
  credit DECIMAL(10, 2),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'public.customers',
  'username' = 'shop', 'password' = 'not shown'
);

CREATE TABLE enriched (
  id BIGINT,
  name STRING,
  city STRING,
  credit DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'enriched',
  'format' = 'json'
);

CREATE TABLE rich (
  id BIGINT,
  name STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'rich',
  'format' = 'json'
);

CREATE TABLE osloans (
  id BIGINT,
  name STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'osloans',
  'format' = 'json'
);

INSERT INTO enriched
SELECT o.id, c.name, c.city, c.credit
FROM orders AS o
LEFT JOIN customers FOR SYSTEM_TIME AS OF o.now_ AS c
  ON o.customer = c.id;

INSERT INTO rich
SELECT o.id, c.name
FROM orders AS o
JOIN customers FOR SYSTEM_TIME AS OF o.now_ AS c
  ON o.customer = c.id AND c.credit > o.amount
WHERE c.city <> 'Rome';

INSERT INTO osloans
SELECT o.id, c.name
FROM orders AS o
LEFT JOIN customers FOR SYSTEM_TIME AS OF o.now_ AS c
  ON o.customer = c.id AND c.city = 'Oslo';
