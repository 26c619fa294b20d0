-- A window over distinct rows, one of whose columns is the event time: rows that are equal count once.

CREATE TABLE demo (
  ID STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE counted (ID STRING, n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'counted', 'format' = 'json');

INSERT INTO counted
SELECT ID, COUNT(*) FROM (SELECT DISTINCT ID, ts FROM demo) GROUP BY ID, TUMBLINGWINDOW(ss, 10);
