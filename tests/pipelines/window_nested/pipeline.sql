-- Windows over one another, in both forms: the time of the inner window is a time attribute again.

CREATE TABLE user_behavior (
    user_id BIGINT,
    item_id BIGINT,
    behavior STRING,
    ts TIMESTAMP(3),
    WATERMARK FOR ts as ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'behavior', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE totals (end_ts TIMESTAMP(3), user_id BIGINT, cnt BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'totals', 'format' = 'json');

CREATE TABLE busy (window_start TIMESTAMP(3), window_end TIMESTAMP(3), cnt BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'busy', 'format' = 'json');

CREATE TABLE hours (window_start TIMESTAMP(3), window_end TIMESTAMP(3), visits BIGINT, longest BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'hours', 'format' = 'json');

CREATE VIEW small AS
SELECT user_id, COUNT(behavior) AS cnt, window_time
FROM TABLE(HOP(TABLE user_behavior, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND))
GROUP BY user_id, window_start, window_end, window_time;

CREATE VIEW visits AS
SELECT user_id, COUNT(*) AS cnt, window_time
FROM TABLE(SESSION(TABLE user_behavior PARTITION BY user_id, DESCRIPTOR(ts), INTERVAL '30' SECOND))
GROUP BY user_id, window_start, window_end, window_time;

EXECUTE STATEMENT SET BEGIN
INSERT INTO totals
SELECT
  TUMBLE_END(rowtime, INTERVAL '20' MINUTE),
	user_id,
	SUM(cnt)
FROM (
    SELECT
    	user_id,
    	COUNT(behavior) AS cnt,
    	TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS rowtime
    FROM user_behavior
    GROUP BY user_id, TUMBLE(ts, INTERVAL '10' SECOND)
  )
GROUP BY TUMBLE(rowtime, INTERVAL '20' MINUTE), user_id;

-- The sessions of what the windows of all users answer.
INSERT INTO busy
SELECT window_start, window_end, SUM(cnt)
FROM TABLE(SESSION(TABLE small, DESCRIPTOR(window_time), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;

-- Cumulating windows over sessions.
INSERT INTO hours
SELECT window_start, window_end, COUNT(*), MAX(cnt)
FROM TABLE(CUMULATE(TABLE visits, DESCRIPTOR(window_time), INTERVAL '30' MINUTE, INTERVAL '1' HOUR))
GROUP BY window_start, window_end;
END;
