-- The processing time of rows behind what holds them back is that at which they come out: minutes by the clock over OVER and
-- ORDER BY in event time, over rows of windows and sessions, over joins, and over eKuiper's windows.

CREATE TABLE pay (
  who STRING,
  id BIGINT,
  ts TIMESTAMP(3),
  arrival AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'pay', 'format' = 'json');

CREATE TABLE checked (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'checked', 'format' = 'json');

CREATE TABLE rates (who STRING, rate BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'key.format' = 'json', 'value.format' = 'json');

CREATE TABLE over_time (starts TIMESTAMP(3), n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'over_time', 'format' = 'json');
CREATE TABLE in_order WITH ('topic' = 'in_order') LIKE over_time;
CREATE TABLE first_of_each WITH ('topic' = 'first_of_each') LIKE over_time;
CREATE TABLE rows_of_windows WITH ('topic' = 'rows_of_windows') LIKE over_time;
CREATE TABLE rows_of_sessions WITH ('topic' = 'rows_of_sessions') LIKE over_time;
CREATE TABLE passed WITH ('topic' = 'passed') LIKE over_time;
CREATE TABLE pairs WITH ('topic' = 'pairs') LIKE over_time;

CREATE TABLE numbered (id BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'numbered', 'format' = 'json');
CREATE TABLE rated (id BIGINT, n BIGINT, rate BIGINT) WITH ('connector' = 'kafka', 'topic' = 'rated', 'format' = 'json');

CREATE VIEW counted AS SELECT who, id, arrival, COUNT(*) OVER (PARTITION BY who ORDER BY ts) AS n FROM pay;

EXECUTE STATEMENT SET
BEGIN
INSERT INTO over_time
SELECT window_start, COUNT(*) FROM TUMBLE(TABLE counted, DESCRIPTOR(arrival), INTERVAL '1' MINUTE)
GROUP BY window_start, window_end;

INSERT INTO in_order
SELECT TUMBLE_START(arrival, INTERVAL '1' MINUTE), COUNT(*) FROM (SELECT who, arrival FROM pay ORDER BY ts)
GROUP BY TUMBLE(arrival, INTERVAL '1' MINUTE);

INSERT INTO first_of_each
SELECT TUMBLE_START(arrival, INTERVAL '1' MINUTE), COUNT(*)
FROM (SELECT arrival FROM pay QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts) = 1)
GROUP BY TUMBLE(arrival, INTERVAL '1' MINUTE);

INSERT INTO rows_of_windows
SELECT TUMBLE_START(arrival, INTERVAL '1' MINUTE), COUNT(*)
FROM HOP(TABLE pay, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)
GROUP BY TUMBLE(arrival, INTERVAL '1' MINUTE);

INSERT INTO rows_of_sessions
SELECT TUMBLE_START(arrival, INTERVAL '1' MINUTE), COUNT(*)
FROM SESSION(TABLE pay PARTITION BY who, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY TUMBLE(arrival, INTERVAL '1' MINUTE);

INSERT INTO passed
SELECT TUMBLE_START(arrival, INTERVAL '1' MINUTE), COUNT(*)
FROM (SELECT arrival FROM pay WHERE id IN (SELECT id FROM checked))
GROUP BY TUMBLE(arrival, INTERVAL '1' MINUTE);

INSERT INTO pairs
SELECT TUMBLE_START(arrival, INTERVAL '1' MINUTE), COUNT(*)
FROM (SELECT arrival FROM pay GROUP BY COUNTWINDOW(2))
GROUP BY TUMBLE(arrival, INTERVAL '1' MINUTE);

INSERT INTO numbered
SELECT id, COUNT(*) OVER (ORDER BY arrival) FROM (
  SELECT id, arrival, LEAD(id) OVER (PARTITION BY who ORDER BY ts) AS next_id FROM pay
)
WHERE next_id IS NOT NULL;

INSERT INTO rated
SELECT c.id, c.n, r.rate FROM counted AS c JOIN rates FOR SYSTEM_TIME AS OF c.arrival AS r ON c.who = r.who;
END;
