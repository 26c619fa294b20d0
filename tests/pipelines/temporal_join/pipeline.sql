-- Each order meets the rate of its own time, once both watermarks have reached that; what changes later corrects nothing.

CREATE TABLE orders (
  id BIGINT,
  amount BIGINT,
  currency STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE rates (
  currency STRING,
  rate BIGINT,
  ts TIMESTAMP(3) METADATA FROM 'timestamp',
  WATERMARK FOR ts AS ts,
  PRIMARY KEY (currency) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'rates',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE converted (
  id BIGINT,
  yen BIGINT,
  rate_since TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'converted',
  'format' = 'json'
);

INSERT INTO converted
SELECT o.id, o.amount * r.rate, r.ts
FROM orders AS o
JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r
  ON o.currency = r.currency;
