-- Windows over windows: 10 s, then 20 minutes of them. The query is that of the seed on time and windows.

CREATE TABLE user_behavior (
  user_id BIGINT,
  behavior STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'user_behavior', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE counts (
  window_end TIMESTAMP(3),
  user_id BIGINT,
  cnt BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'counts',
  'format' = 'json'
);

INSERT INTO counts
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
