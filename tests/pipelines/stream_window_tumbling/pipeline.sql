-- Tumbling windows end at multiples of ten seconds; start and end in milliseconds since the epoch.

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
  n BIGINT,
  first_ms BIGINT,
  end_ms BIGINT,
  time_ms BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT ID, count(*), window_start(), window_end(), event_time() FROM demo GROUP BY ID, TUMBLINGWINDOW(ss, 10);
