-- Windows of different partitions over rows of one time: all of them have these in the order of their records.

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

CREATE TABLE calls (
  id BIGINT,
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'calls', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE paths (
  id BIGINT,
  of_who BIGINT,
  before_on_page BIGINT,
  number BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'paths',
  'format' = 'json'
);

CREATE TABLE both (
  id BIGINT,
  next_of_who BIGINT,
  next_on_page BIGINT,
  number BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'both',
  'format' = 'json'
);

INSERT INTO paths
SELECT
  id,
  COUNT(*) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
  LAG(id) OVER (PARTITION BY page ORDER BY ts),
  ROW_NUMBER() OVER (ORDER BY ts)
FROM visits;

INSERT INTO both
SELECT
  id,
  LEAD(id) OVER (PARTITION BY who ORDER BY ts),
  LEAD(id) OVER (PARTITION BY page ORDER BY ts),
  ROW_NUMBER() OVER (ORDER BY ts)
FROM (SELECT * FROM visits UNION ALL SELECT * FROM calls);
