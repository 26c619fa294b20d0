-- The highest price of the last three items of a type: the data and the answer are those of the seed on OVER windows.

CREATE TABLE tmall_item (
  itemID VARCHAR,
  itemType VARCHAR,
  onSellTime TIMESTAMP(3),
  price DOUBLE,
  WATERMARK FOR onSellTime AS onSellTime
) WITH (
  'connector' = 'kafka', 'topic' = 'tmall_item', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE max_price (
  itemID VARCHAR,
  itemType VARCHAR,
  onSellTime TIMESTAMP(3),
  price DOUBLE,
  maxPrice DOUBLE
) WITH (
  'connector' = 'kafka', 'topic' = 'max_price',
  'format' = 'json'
);

INSERT INTO max_price
SELECT
    itemID,
    itemType,
    onSellTime,
    price,
    MAX(price) OVER (
        PARTITION BY itemType
        ORDER BY onSellTime
        ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS maxPrice
  FROM tmall_item;
