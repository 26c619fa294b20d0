-- Rows are answered once their frames are complete: with the next row of their key, or some time later.

CREATE TABLE visits (
  id BIGINT,
  who STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE stays (
  id BIGINT,
  who STRING,
  seconds BIGINT,
  next_but_one BIGINT,
  around STRING,
  so_far BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'stays',
  'format' = 'json'
);

CREATE TABLE crowds (
  id BIGINT,
  near BIGINT,
  after BIGINT,
  until_then BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'crowds',
  'format' = 'json'
);

INSERT INTO stays
SELECT
  id,
  who,
  TIMESTAMPDIFF(SECOND, ts, LEAD(ts) OVER w),
  LEAD(id, 2, -1) OVER w,
  LISTAGG(CAST(id AS STRING), ' ') OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING),
  COUNT(*) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)
FROM visits
WINDOW w AS (PARTITION BY who ORDER BY ts);

INSERT INTO crowds
SELECT
  id,
  COUNT(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND INTERVAL '2' SECOND FOLLOWING),
  COUNT(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND FOLLOWING AND INTERVAL '3' SECOND FOLLOWING),
  COUNT(*) OVER (ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '3' SECOND FOLLOWING)
FROM visits;
