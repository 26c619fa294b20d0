-- SESSION without GROUP BY: each row comes out with its session once that closes. The rows taken for the count are
-- filtered after their sessions are known, so a session may have rows that do not count.

CREATE TABLE clicks (
  user_id STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE steps (
  user_id STRING,
  page STRING,
  ts TIMESTAMP(3),
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'steps', 'format' = 'json');

CREATE TABLE carts (
  user_id STRING,
  carts BIGINT,
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'carts', 'format' = 'json');

CREATE VIEW visited AS
SELECT *
FROM SESSION(DATA => TABLE clicks PARTITION BY user_id, TIMECOL => DESCRIPTOR(ts), GAP => INTERVAL '1' MINUTE);

EXECUTE STATEMENT SET BEGIN
INSERT INTO steps SELECT user_id, page, ts, window_start, window_end FROM visited;

INSERT INTO carts
SELECT user_id, COUNT(*), window_start, window_end
FROM visited
WHERE page = 'cart'
GROUP BY user_id, window_start, window_end;
END;
