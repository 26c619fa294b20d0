-- A session ends after a minute without a row, and at an even minute once it is longer than two.

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
  n BIGINT,
  first_ms BIGINT,
  end_ms BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT ID, count(*), window_start(), window_end() FROM demo GROUP BY ID, SESSIONWINDOW(mi, 2, 1);
