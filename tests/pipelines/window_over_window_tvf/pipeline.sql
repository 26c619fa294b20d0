-- Windows over windows with table functions: window_time is a time attribute again.

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE revenue (
  total BIGINT,
  users BIGINT,
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'revenue',
  'format' = 'json'
);

CREATE VIEW small AS
SELECT user_id, SUM(amount) AS total, window_time
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY user_id, window_start, window_end, window_time;

INSERT INTO revenue
SELECT SUM(total), COUNT(DISTINCT user_id), window_start, window_end
FROM TABLE(TUMBLE(TABLE small, DESCRIPTOR(window_time), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
