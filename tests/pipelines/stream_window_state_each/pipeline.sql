-- Each row over 100 ends a window and begins the next.

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
  n BIGINT,
  total BIGINT,
  first_ms BIGINT,
  end_ms BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT count(*), SUM(revenue), window_start(), window_end() FROM demo GROUP BY STATEWINDOW(revenue > 100);
