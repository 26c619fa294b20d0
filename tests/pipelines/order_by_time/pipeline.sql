-- Events in the order of their times; those of one time by their number.

CREATE TABLE events (
  id BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '3' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'events', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE sorted (
  id BIGINT,
  ts TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'sorted',
  'format' = 'json'
);

INSERT INTO sorted SELECT id, ts FROM events ORDER BY ts, id DESC;
