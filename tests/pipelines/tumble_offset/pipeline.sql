-- Windows of one hour that begin at a quarter past.

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
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  window_time TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'revenue',
  'format' = 'json'
);

INSERT INTO revenue
SELECT SUM(amount), window_start, window_end, window_time
FROM TABLE(TUMBLE(DATA => TABLE orders, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' HOUR, `OFFSET` => INTERVAL '15' MINUTE))
GROUP BY window_start, window_end, window_time;
