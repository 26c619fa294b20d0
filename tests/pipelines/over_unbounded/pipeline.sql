-- A running count of each user's behavior: the query, the data and the answer are those of the seed on time and windows.

CREATE TABLE user_behavior (
  user_id BIGINT,
  behavior STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'user_behavior', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE counts (
  user_id BIGINT,
  behavior STRING,
  behavior_count BIGINT,
  ts TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'counts',
  'format' = 'json'
);

INSERT INTO counts
SELECT
    user_id,
    behavior,
    COUNT(*) OVER w AS behavior_count,
    ts
FROM user_behavior
WINDOW w AS (
    PARTITION BY user_id
    ORDER BY ts
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
