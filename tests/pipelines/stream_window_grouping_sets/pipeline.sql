-- eKuiper's windows grouped by several sets: every three rows by room, by room and kind, and as a whole; sessions of each
-- room by kind and as a whole, which stay those of the room; and ten seconds of each room.

CREATE TABLE readings (
  room STRING,
  kind STRING,
  v INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'readings', 'format' = 'json');

CREATE TABLE threes (
  room STRING,
  kind STRING,
  level BIGINT,
  readings BIGINT,
  most INT
) WITH ('connector' = 'kafka', 'topic' = 'threes', 'format' = 'json');

CREATE TABLE sessions (
  room STRING,
  kind STRING,
  starts BIGINT,
  total INT
) WITH ('connector' = 'kafka', 'topic' = 'sessions', 'format' = 'json');

CREATE TABLE tens WITH ('topic' = 'tens') LIKE sessions;

EXECUTE STATEMENT SET
BEGIN
INSERT INTO threes
SELECT room, kind, GROUPING(room, kind), COUNT(*), MAX(v) FROM readings
GROUP BY ROLLUP (room, kind), COUNTWINDOW(3);

INSERT INTO sessions
SELECT room, kind, window_start(), SUM(v) FROM readings
GROUP BY GROUPING SETS ((kind, room), (room), ()), SESSIONWINDOW(ss, 60, 5) OVER (PARTITION BY room)
HAVING COUNT(*) > 1 OR GROUPING(kind) = 1;

INSERT INTO tens
SELECT room, kind, window_start(), SUM(v) FROM readings
GROUP BY GROUPING SETS ((kind), ()), TUMBLINGWINDOW(ss, 10) OVER (PARTITION BY room);
END;
