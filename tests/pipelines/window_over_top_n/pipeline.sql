-- A window over the best row of each key: it counts those that are the best as it closes. A row that is replaced
-- afterwards stays in the answer of its window, and its retraction is late.

CREATE TABLE bids (
  item STRING,
  price BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'bids', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE VIEW best AS
SELECT item, price, ts
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY price DESC) AS place
  FROM (SELECT DISTINCT item, price, ts FROM bids)
)
WHERE place = 1;

CREATE TABLE leading (window_start TIMESTAMP(3), items BIGINT, highest BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'leading', 'format' = 'json');

INSERT INTO leading
SELECT window_start, COUNT(*), MAX(price)
FROM TABLE(TUMBLE(TABLE best, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;
