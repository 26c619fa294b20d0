-- Ranks by time, of rows of one time as well; the second row of a key, and how many different values it has had.

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

CREATE TABLE numbers (
  id BIGINT,
  who STRING,
  place BIGINT,
  moment BIGINT,
  second_page STRING,
  pages BIGINT,
  other_pages BIGINT,
  all_pages STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'numbers',
  'format' = 'json'
);

INSERT INTO numbers
SELECT
  id,
  who,
  RANK() OVER w,
  DENSE_RANK() OVER w,
  NTH_VALUE(page, 2) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
  COUNT(DISTINCT page) OVER w,
  COUNT(DISTINCT page) FILTER (WHERE page <> 'home') OVER w,
  LISTAGG(DISTINCT page) OVER (ORDER BY ts)
FROM visits
WINDOW w AS (PARTITION BY who ORDER BY ts);
