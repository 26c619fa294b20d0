-- The three products that were sold most, the second and third order by price, and the first two orders to arrive.

CREATE TABLE orders (
  id BIGINT,
  product STRING,
  price DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE products (
  product STRING,
  sold BIGINT,
  PRIMARY KEY (product) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'products',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE runners_up (
  id BIGINT,
  price DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'runners_up',
  'format' = 'changelog-json'
);

CREATE TABLE earliest (
  id BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'earliest',
  'format' = 'json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO products
SELECT product, COUNT(*) AS sold FROM orders GROUP BY product ORDER BY sold DESC, product LIMIT 2;

INSERT INTO runners_up
SELECT id, price FROM orders ORDER BY price DESC LIMIT 2 OFFSET 1;

INSERT INTO earliest
SELECT id FROM orders FETCH FIRST 2 ROWS ONLY;
END;
