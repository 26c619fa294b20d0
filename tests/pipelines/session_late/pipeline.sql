-- A row is late if the session that it would make or join has closed.

CREATE TABLE clicks (
  user_id STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE visits (
  user_id STRING,
  clicks BIGINT,
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

INSERT INTO visits
SELECT user_id, COUNT(*), window_start, window_end
FROM TABLE(SESSION(TABLE clicks PARTITION BY user_id, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY user_id, window_start, window_end;
