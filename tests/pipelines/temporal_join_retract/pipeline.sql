-- Orders that change meet the price of their own time again, whatever the price is now. The price is that of a view: what
-- is not for sale has none. A tombstone, which has no time, ends a price from its own time on.

CREATE TABLE orders (
  id BIGINT,
  product STRING,
  pieces BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE prices (
  product STRING,
  price BIGINT,
  for_sale BOOLEAN,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts,
  PRIMARY KEY (product) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'prices',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE VIEW offers AS
SELECT UPPER(product) AS shown, price * 100 AS cents, product, ts FROM prices WHERE for_sale;

CREATE TABLE bills (
  id BIGINT,
  product STRING,
  cents BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'bills',
  'format' = 'changelog-json'
);

INSERT INTO bills
SELECT o.id, p.shown, o.pieces * p.cents
FROM orders AS o
LEFT JOIN offers FOR SYSTEM_TIME AS OF o.ts AS p
  ON o.product = p.product;
