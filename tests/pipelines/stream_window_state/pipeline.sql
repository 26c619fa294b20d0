-- From a row over 100 to the next under 10, for each ID.

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
SELECT * FROM demo GROUP BY STATEWINDOW(revenue > 100, revenue < 10) OVER (PARTITION BY ID);
