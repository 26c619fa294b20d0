-- A row that fires no window is in those of others.

CREATE TABLE demo (
  ID STRING,
  revenue BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  ID STRING,
  revenue BIGINT,
  ts TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT * FROM demo GROUP BY SlidingWindow(ss,2) OVER(when revenue > 200);
