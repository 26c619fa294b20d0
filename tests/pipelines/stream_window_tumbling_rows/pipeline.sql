-- Without an aggregate the rows of a window come out when it ends.

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
  ts TIMESTAMP(3),
  first_ms BIGINT,
  time_ms BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT *, window_start(), event_time() FROM demo WHERE revenue <> 2 GROUP BY TUMBLINGWINDOW(ss, 10);
