-- Shipments within four hours of their order, written as a list of tables with the times in WHERE.

CREATE TABLE Orders (
  id BIGINT,
  ordertime TIMESTAMP(3),
  WATERMARK FOR ordertime AS ordertime
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE Shipments (
  shipId BIGINT,
  orderId BIGINT,
  shiptime TIMESTAMP(3),
  WATERMARK FOR shiptime AS shiptime
) WITH (
  'connector' = 'kafka', 'topic' = 'shipments', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE shipped (
  id BIGINT,
  ordertime TIMESTAMP(3),
  shipId BIGINT,
  orderId BIGINT,
  shiptime TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'shipped', 'format' = 'json'
);

INSERT INTO shipped
SELECT *
FROM
Orders o,
Shipments s
WHERE
o.id = s.orderId AND
s.shiptime BETWEEN o.ordertime AND o.ordertime + INTERVAL '4' HOUR;
