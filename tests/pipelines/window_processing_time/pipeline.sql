-- Windows by the clock: in GROUP BY, over one another, and as sessions. They close by the clock alone; nothing is late.

CREATE TABLE user_behavior (
    user_id BIGINT,
    item_id BIGINT,
    category_id BIGINT,
    behavior STRING,
    ts TIMESTAMP(3),
    proctime as PROCTIME()
) WITH (
  'connector' = 'kafka', 'topic' = 'behavior', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE per_minute (user_id BIGINT, behavior_cnt BIGINT, end_ts TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'per_minute', 'format' = 'json');

CREATE TABLE per_hour (end_ts TIMESTAMP(3), users BIGINT, behavior_cnt BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'per_hour', 'format' = 'json');

CREATE TABLE visits (user_id BIGINT, behavior_cnt BIGINT, start_ts TIMESTAMP(3), end_ts TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

CREATE TABLE running (window_start TIMESTAMP(3), window_end TIMESTAMP(3), behavior_cnt BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'running', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO per_minute
SELECT
	user_id,
	COUNT(behavior) AS behavior_cnt,
	TUMBLE_END(proctime, INTERVAL '1' MINUTE) AS end_ts
FROM user_behavior
GROUP BY user_id, TUMBLE(proctime, INTERVAL '1' MINUTE);

INSERT INTO per_hour
SELECT TUMBLE_END(pt, INTERVAL '1' HOUR), COUNT(DISTINCT user_id), SUM(cnt)
FROM (
    SELECT
      user_id,
      COUNT(behavior) AS cnt,
      TUMBLE_PROCTIME(proctime, INTERVAL '1' MINUTE) AS pt
    FROM user_behavior
    GROUP BY user_id, TUMBLE(proctime, INTERVAL '1' MINUTE)
  )
GROUP BY TUMBLE(pt, INTERVAL '1' HOUR);

INSERT INTO visits
SELECT user_id, COUNT(*), SESSION_START(proctime, INTERVAL '5' MINUTE), SESSION_END(proctime, INTERVAL '5' MINUTE)
FROM user_behavior
GROUP BY user_id, SESSION(proctime, INTERVAL '5' MINUTE);

INSERT INTO running
SELECT window_start, window_end, COUNT(*)
FROM CUMULATE(TABLE user_behavior, DESCRIPTOR(proctime), INTERVAL '20' MINUTE, INTERVAL '1' HOUR)
GROUP BY window_start, window_end;
END;
