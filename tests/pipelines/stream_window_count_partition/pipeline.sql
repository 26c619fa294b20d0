-- Windows of their own for each value of a column, and one row for each key of a window over the whole stream.

CREATE TABLE demo (
  ID STRING,
  v BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  over_what STRING,
  ID STRING,
  total BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT 'partition', ID, SUM(v) FROM demo GROUP BY COUNTWINDOW(2) OVER (PARTITION BY ID)
UNION ALL
SELECT 'stream', ID, SUM(v) FROM demo GROUP BY ID, COUNTWINDOW(4);
