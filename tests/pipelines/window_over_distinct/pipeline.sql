-- Windows, OVER and ORDER BY over rows of which each is there once: the time that is among the columns of SELECT DISTINCT, of
-- GROUP BY and of a set operation is a time attribute again.

CREATE TABLE visits (
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

CREATE TABLE robots (
  who STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'robots', 'format' = 'json');

CREATE TABLE people (starts TIMESTAMP(3), visits BIGINT) WITH ('connector' = 'kafka', 'topic' = 'people', 'format' = 'json');
CREATE TABLE together WITH ('topic' = 'together') LIKE people;
CREATE TABLE human WITH ('topic' = 'human') LIKE people;

CREATE TABLE most (
  ends TIMESTAMP(3),
  pages BIGINT,
  who STRING
) WITH ('connector' = 'kafka', 'topic' = 'most', 'format' = 'json');

CREATE TABLE so_far (
  who STRING,
  ts TIMESTAMP(3),
  n BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'so_far', 'format' = 'json');

CREATE TABLE in_order (ts TIMESTAMP(3), who STRING) WITH ('connector' = 'kafka', 'topic' = 'in_order', 'format' = 'json');

CREATE VIEW once AS SELECT DISTINCT who, ts FROM visits;

EXECUTE STATEMENT SET
BEGIN
INSERT INTO people
SELECT window_start, COUNT(*) FROM TUMBLE(TABLE once, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY window_start, window_end;

INSERT INTO together
SELECT TUMBLE_START(ts, INTERVAL '10' SECOND), COUNT(*)
FROM (SELECT who, ts FROM visits UNION SELECT who, ts FROM robots)
GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);

INSERT INTO human
SELECT window_start, COUNT(*)
FROM (
  SELECT * FROM TUMBLE(
    DATA => (SELECT who, ts FROM visits EXCEPT SELECT who, ts FROM robots), TIMECOL => DESCRIPTOR(ts),
    SIZE => INTERVAL '10' SECOND)
)
GROUP BY window_start, window_end;

INSERT INTO most
SELECT window_end, pages, who
FROM TUMBLE(DATA => (SELECT who, ts, COUNT(*) AS pages FROM visits GROUP BY who, ts), TIMECOL => DESCRIPTOR(ts),
  SIZE => INTERVAL '10' SECOND)
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY pages DESC, who) = 1;

INSERT INTO so_far
SELECT who, ts, COUNT(*) OVER (PARTITION BY who ORDER BY ts) FROM once;

INSERT INTO in_order SELECT ts, who FROM once ORDER BY ts, who;
END;
