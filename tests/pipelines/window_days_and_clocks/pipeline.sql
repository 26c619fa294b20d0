-- Days of the session's time zone, through both changes of its clocks: one day has 23 hours, another 25. An offset moves
-- the days to begin at six in the morning.

SET 'table.local-time-zone' = 'Europe/Berlin';

CREATE TABLE sales (
  ms BIGINT,
  amount BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'sales', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE days (window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, amount BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'days', 'format' = 'json');

CREATE TABLE shifts (window_start TIMESTAMP(3), window_end TIMESTAMP(3), window_time TIMESTAMP_LTZ(3), n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'shifts', 'format' = 'json');

CREATE TABLE visits (window_start TIMESTAMP(3), window_end TIMESTAMP(3), window_time TIMESTAMP_LTZ(3), n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO days
SELECT TUMBLE_START(ts, INTERVAL '1' DAY), TUMBLE_END(ts, INTERVAL '1' DAY), COUNT(*), SUM(amount)
FROM sales
GROUP BY TUMBLE(ts, INTERVAL '1' DAY);

INSERT INTO shifts
SELECT window_start, window_end, window_time, COUNT(*)
FROM TABLE(TUMBLE(TABLE sales, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '6' HOUR))
GROUP BY window_start, window_end, window_time;

-- Elapsed time: rows half an hour apart are of one session also where the clock goes back in between.
INSERT INTO visits
SELECT window_start, window_end, window_time, COUNT(*)
FROM TABLE(SESSION(TABLE sales, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, window_time;
END;
