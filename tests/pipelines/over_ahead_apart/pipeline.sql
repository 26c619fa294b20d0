-- Windows that wait for the next rows of different partitions: each answers by itself, a row comes when all have.

CREATE TABLE visits (
  id BIGINT,
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE paths (
  id BIGINT,
  next_of_who BIGINT,
  next_of_page BIGINT,
  third_of_page BIGINT,
  so_far BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'paths',
  'format' = 'json'
);

INSERT INTO paths
SELECT
  id,
  LEAD(id) OVER (PARTITION BY who ORDER BY ts),
  LEAD(id) OVER (PARTITION BY page ORDER BY ts),
  LEAD(id, 2, -1) OVER (PARTITION BY UPPER(page) ORDER BY ts),
  COUNT(*) OVER (ORDER BY ts)
FROM visits;
