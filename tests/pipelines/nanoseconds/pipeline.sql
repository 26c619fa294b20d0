-- Times with nine digits after the second, in every format that has text: six of them are kept.

CREATE TABLE events (
  id BIGINT,
  ts TIMESTAMP(9),
  made TIMESTAMP_LTZ(9),
  clock TIME(9)
) WITH (
  'connector' = 'kafka', 'topic' = 'events', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE lines (
  id BIGINT,
  ts TIMESTAMP(9)
) WITH (
  'connector' = 'kafka', 'topic' = 'lines', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'csv'
);

CREATE TABLE kept (
  id BIGINT,
  ts TIMESTAMP(9),
  made TIMESTAMP_LTZ(9),
  clock TIME(9),
  later STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'kept',
  'format' = 'json'
);

INSERT INTO kept
SELECT id, ts, made, clock, CAST(ts + INTERVAL '1' SECOND AS STRING) FROM events
UNION ALL
SELECT id, ts, CAST(NULL AS TIMESTAMP_LTZ(9)), CAST(NULL AS TIME(9)), CAST(ts AS STRING) FROM lines;
