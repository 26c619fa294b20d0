-- The older form of sessions, with a session of sessions over its SESSION_ROWTIME.

CREATE TABLE clicks (
  user_id STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE visits (
  user_id STRING,
  clicks BIGINT,
  starts TIMESTAMP(3),
  ends TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

CREATE TABLE busy (
  visits BIGINT,
  clicks BIGINT,
  starts TIMESTAMP(3),
  ends TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'busy', 'format' = 'json');

CREATE VIEW by_user AS
SELECT
  user_id,
  COUNT(page) AS clicks,
  SESSION_START(ts, INTERVAL '1' MINUTE) AS starts,
  SESSION_END(ts, INTERVAL '1' MINUTE) AS ends,
  SESSION_ROWTIME(ts, INTERVAL '1' MINUTE) AS t
FROM clicks
GROUP BY user_id, SESSION(ts, INTERVAL '1' MINUTE);

EXECUTE STATEMENT SET BEGIN
INSERT INTO visits SELECT user_id, clicks, starts, ends FROM by_user;

INSERT INTO busy
SELECT COUNT(*), SUM(clicks), SESSION_START(t, INTERVAL '2' MINUTE), SESSION_END(t, INTERVAL '2' MINUTE)
FROM by_user
GROUP BY SESSION(t, INTERVAL '2' MINUTE);
END;
