-- Windows in processing time: the rows of a batch have one time, and tie.

CREATE TABLE visits (
  id BIGINT,
  who STRING,
  page INT,
  pt AS PROCTIME()
) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE places (
  id BIGINT,
  number BIGINT,
  place BIGINT,
  batch BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'places',
  'format' = 'json'
);

CREATE TABLE steps (
  id BIGINT,
  next_of_who BIGINT,
  next_of_page BIGINT,
  soon BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'steps',
  'format' = 'json'
);

INSERT INTO places
SELECT
  id,
  ROW_NUMBER() OVER (PARTITION BY who ORDER BY pt),
  RANK() OVER (PARTITION BY who ORDER BY pt),
  DENSE_RANK() OVER (PARTITION BY who ORDER BY pt)
FROM visits;

INSERT INTO steps
SELECT
  id,
  LEAD(id) OVER (PARTITION BY who ORDER BY pt),
  LEAD(id) OVER (PARTITION BY page ORDER BY pt),
  COUNT(*) OVER (PARTITION BY who ORDER BY pt RANGE BETWEEN CURRENT ROW AND INTERVAL '10' SECOND FOLLOWING)
FROM visits;
