-- Joins in the order of a hint: orders meet customers before shipments, and the columns stay as they are written.

CREATE TABLE orders (id BIGINT, customer BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE shipments (order_id BIGINT, place STRING) WITH (
  'connector' = 'kafka', 'topic' = 'shipments', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE customers (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = 'customers', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE sent (order_id BIGINT, customer BIGINT, shipped BIGINT, place STRING, who BIGINT, name STRING) WITH (
  'connector' = 'kafka', 'topic' = 'sent', 'format' = 'changelog-json'
);

INSERT INTO sent
SELECT /*+ LEADING(c, o) */ *
FROM orders AS o
JOIN shipments AS s ON o.id = s.order_id
JOIN customers AS c ON o.customer = c.id;
