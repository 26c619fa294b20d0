-- SINGLE_VALUE: a group of several rows is a row that cannot be computed; it goes to the dead letters while it is one.

CREATE TABLE prices (
  item STRING,
  shop STRING,
  price DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'prices', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE only (item STRING, price DECIMAL(10, 2), cheap DECIMAL(10, 2), PRIMARY KEY (item) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'only', 'key.format' = 'json', 'value.format' = 'json');

INSERT INTO only
SELECT item, SINGLE_VALUE(price), SINGLE_VALUE(price) FILTER (WHERE price < 3)
FROM prices
GROUP BY item
HAVING COUNT(*) < 3;
