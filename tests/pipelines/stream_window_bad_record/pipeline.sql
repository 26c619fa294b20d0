-- A record that cannot be decoded goes to the dead letters at once and is in no window; so does a row without a time, where
-- the window is one of time.

CREATE TABLE demo (
  id BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  kind STRING,
  id BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT 'count', id FROM demo GROUP BY COUNTWINDOW(3)
UNION ALL
SELECT 'sliding', id FROM demo GROUP BY SLIDINGWINDOW(ss, 1);
