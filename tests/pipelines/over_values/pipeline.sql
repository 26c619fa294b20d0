-- Aggregates that are read from all values of a frame: multisets, objects, percentiles, and lists of DISTINCT values.

CREATE TABLE readings (
  id BIGINT,
  sensor STRING,
  kind STRING,
  v INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'readings', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE lately (
  id BIGINT,
  how_often MULTISET<INT>,
  by_kind STRING,
  kinds STRING,
  levels ARRAY<INT>,
  bits INT,
  middle DOUBLE,
  spread INT
) WITH (
  'connector' = 'kafka', 'topic' = 'lately',
  'format' = 'json'
);

CREATE TABLE so_far (
  id BIGINT,
  how_often MULTISET<INT>,
  by_kind STRING,
  kinds STRING,
  levels ARRAY<INT>,
  bits INT,
  middle DOUBLE,
  spread INT
) WITH (
  'connector' = 'kafka', 'topic' = 'so_far',
  'format' = 'json'
);

INSERT INTO lately
SELECT
  id,
  COLLECT(v) OVER w,
  JSON_OBJECTAGG(KEY kind VALUE v) OVER w,
  LISTAGG(DISTINCT kind, '-') OVER w,
  ARRAY_AGG(DISTINCT v) OVER w,
  BIT_XOR(DISTINCT v) OVER w,
  PERCENTILE(DISTINCT v, 0.5) OVER w,
  VAR_SAMP(DISTINCT v) OVER w
FROM readings
WINDOW w AS (PARTITION BY sensor ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);

INSERT INTO so_far
SELECT
  id,
  COLLECT(DISTINCT v) OVER w,
  JSON_OBJECTAGG(KEY kind VALUE v ABSENT ON NULL) OVER w,
  LISTAGG(DISTINCT kind, '-') OVER w,
  ARRAY_AGG(DISTINCT v) OVER w,
  BIT_XOR(DISTINCT v) OVER w,
  PERCENTILE(v, 0.5) OVER w,
  VAR_SAMP(DISTINCT v) OVER w
FROM readings
WINDOW w AS (PARTITION BY sensor ORDER BY ts);
