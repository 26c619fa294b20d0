-- The older form, with a temporal table function over all rates there were: of each currency the last one at a time.

CREATE TABLE Orders (
  amount BIGINT,
  currency STRING,
  `time` TIMESTAMP(3),
  WATERMARK FOR `time` AS `time` - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE RatesHistory (
  currency STRING,
  rate BIGINT,
  `time` TIMESTAMP(3),
  WATERMARK FOR `time` AS `time` - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'kafka', 'topic' = 'rates', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE FUNCTION Rates AS RatesHistory PRIMARY KEY (currency) TIME ATTRIBUTE (`time`);

CREATE TABLE yen (
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'yen',
  'format' = 'json'
);

INSERT INTO yen
SELECT
  o.amount * r.rate
FROM
  Orders o,
  LATERAL TABLE(Rates(o.`time`)) r
WHERE
  o.currency = r.currency;
