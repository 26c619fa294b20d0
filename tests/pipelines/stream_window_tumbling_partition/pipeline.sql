-- Each value of a partition has windows of its own: HAVING counts the rows of its window alone.

CREATE TABLE demo (
  ID STRING,
  revenue BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE tumbling (ID STRING, revenue BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'tumbling', 'format' = 'json');

CREATE TABLE hopping (ID STRING, revenue BIGINT, first_ms BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'hopping', 'format' = 'json');

EXECUTE STATEMENT SET
BEGIN
INSERT INTO tumbling
SELECT ID, revenue FROM demo
GROUP BY TUMBLINGWINDOW(ss, 10) OVER (PARTITION BY ID) HAVING COUNT(*) > 1;
INSERT INTO hopping
SELECT ID, revenue, window_start() FROM demo
GROUP BY HOPPINGWINDOW(ss, 10, 5) OVER (PARTITION BY ID) HAVING COUNT(*) > 1;
END;
