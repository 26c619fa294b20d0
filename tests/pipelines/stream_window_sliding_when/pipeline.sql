-- OVER (WHEN ...) says which rows fire a window, FILTER which rows it is made of.

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
SELECT * FROM demo GROUP BY SlidingWindow(ss,2) FILTER(where revenue > 100) OVER(when revenue > 200);
