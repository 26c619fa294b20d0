-- Without a WATERMARK windows are in processing time: batches here are a second apart.

CREATE TABLE demo (
  ID STRING,
  v BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  kind STRING,
  n BIGINT,
  total BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT 'session', count(*), SUM(v) FROM demo GROUP BY SESSIONWINDOW(ss, 10, 2)
UNION ALL
SELECT 'sliding', count(*), SUM(v) FROM demo GROUP BY SLIDINGWINDOW(ss, 2)
UNION ALL
SELECT 'tumbling', count(*), SUM(v) FROM demo GROUP BY TUMBLINGWINDOW(ss, 2);
