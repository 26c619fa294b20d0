-- Several OVER windows at once, rows and range, without PARTITION BY; rows of one time share a range.

CREATE TABLE prices (
  item STRING,
  price BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'prices', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE stats (
  item STRING,
  total BIGINT,
  near BIGINT,
  last_two BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'stats',
  'format' = 'json'
);

INSERT INTO stats
SELECT
  item,
  SUM(price) OVER (ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
  COUNT(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW),
  MIN(price) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
FROM prices;
