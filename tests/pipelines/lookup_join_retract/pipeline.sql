-- An order that is changed is retracted with what it met when it came, and its new row is looked up again.

CREATE TABLE orders (
  id BIGINT,
  customer BIGINT,
  amount BIGINT,
  now_ AS PROCTIME(),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'orders',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE customers (
  id INT,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'jdbc', 'url' = 'postgresql://db/shop', 'table-name' = 'customers'
);

CREATE TABLE cities (
  city STRING,
  orders BIGINT,
  amount BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'cities',
  'key.format' = 'json', 'value.format' = 'json'
);

INSERT INTO cities
SELECT COALESCE(c.city, '?'), COUNT(*), SUM(o.amount)
FROM orders AS o
LEFT JOIN customers FOR SYSTEM_TIME AS OF o.now_ AS c
  ON o.customer = c.id
GROUP BY COALESCE(c.city, '?');
