-- The older form with a column called time that is not quoted: orders in yen, by the rate of their currency at their time.

CREATE TABLE Orders (
  time TIMESTAMP(3),
  amount BIGINT,
  currency STRING,
  WATERMARK FOR time AS time
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE RatesHistory (
  time TIMESTAMP(3),
  currency STRING,
  rate BIGINT,
  WATERMARK FOR time AS time
) WITH (
  'connector' = 'kafka', 'topic' = 'rates', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TEMPORARY TABLE FUNCTION Rates AS RatesHistory PRIMARY KEY (currency) TIME ATTRIBUTE (time);

CREATE TABLE yen (amount BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'yen', 'format' = 'json'
);

INSERT INTO yen
SELECT
o.amount * r.rate
FROM
Orders o,
LATERAL Table(Rates(o.time)) r
WHERE
o.currency = r.currency;
