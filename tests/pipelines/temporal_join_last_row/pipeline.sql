-- A view of last rows as the table: each row of the stream below it is a version, also those that follow within a batch.

CREATE TABLE orders (
  id BIGINT,
  currency STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE history (
  currency STRING,
  rate BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'rates', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE VIEW rates AS
SELECT currency, rate, ts
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS n FROM history)
WHERE n = 1;

CREATE TABLE rated (
  id BIGINT,
  rate BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'rated',
  'format' = 'json'
);

INSERT INTO rated
SELECT o.id, r.rate
FROM orders AS o
LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r
  ON o.currency = r.currency;
