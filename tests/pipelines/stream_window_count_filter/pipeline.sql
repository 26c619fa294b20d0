-- A window is made of the rows for which FILTER holds, so it always has three.

CREATE TABLE demo (
  ID STRING,
  revenue BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  ID STRING,
  revenue BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT * FROM demo GROUP BY COUNTWINDOW(3,1) FILTER(where revenue > 100);
