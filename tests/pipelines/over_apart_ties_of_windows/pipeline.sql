-- Windows of different partitions over the rows of time windows: those of one time are in the order of their records.

CREATE TABLE visits (
  id BIGINT,
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE paths (
  id BIGINT,
  window_end TIMESTAMP(3),
  before_of_who BIGINT,
  before_on_page BIGINT,
  number BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'paths',
  'format' = 'json'
);

INSERT INTO paths
SELECT
  id,
  window_end,
  LAG(id) OVER (PARTITION BY who ORDER BY window_time),
  LAG(id) OVER (PARTITION BY page ORDER BY window_time),
  ROW_NUMBER() OVER (ORDER BY window_time)
FROM HOP(TABLE visits, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '2' SECOND);
