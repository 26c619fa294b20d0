-- Each order meets its product, whichever came first, and each change of the product after that.

CREATE TABLE Orders (orderId BIGINT, productId BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE Product (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = 'product', 'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json'
);

CREATE TABLE sold (orderId BIGINT, productId BIGINT, id BIGINT, name STRING) WITH (
  'connector' = 'kafka', 'topic' = 'sold', 'format' = 'debezium-json'
);

INSERT INTO sold
SELECT * FROM Orders
INNER JOIN Product
ON Orders.productId = Product.id;
