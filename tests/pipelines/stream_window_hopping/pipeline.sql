-- A hopping window has its size before its hop.

CREATE TABLE demo (
  ID STRING,
  v BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  ID STRING,
  n BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT ID, count(*) FROM demo WHERE v <> 4 GROUP BY ID, HOPPINGWINDOW(ss, 10, 5) HAVING SUM(v) > 1;
