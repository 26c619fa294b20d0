-- With a cache a row may meet what the database had a while ago, here at most 2 seconds; that a key has no row is not
-- remembered.

CREATE TABLE orders (
  id BIGINT,
  product STRING,
  region STRING,
  now_ AS PROCTIME()
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE prices (
  product STRING,
  region STRING,
  price DOUBLE,
  since TIMESTAMP_LTZ(3)
) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:sqlite:/data/prices.db', 'table-name' = 'prices',
  'lookup.cache' = 'PARTIAL',
  'lookup.partial-cache.max-rows' = '1000',
  'lookup.partial-cache.expire-after-write' = '2 s',
  'lookup.partial-cache.cache-missing-key' = 'false'
);

CREATE TABLE priced (
  id BIGINT,
  price DOUBLE,
  since TIMESTAMP_LTZ(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'priced',
  'format' = 'json'
);

INSERT INTO priced
SELECT o.id, p.price, p.since
FROM orders AS o
JOIN prices FOR SYSTEM_TIME AS OF o.now_ AS p
  ON o.product = p.product AND o.region = p.region;
