-- A partition that falls silent for longer than the idle timeout no longer holds the watermark.

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json', 'scan.watermark.idle-timeout' = '5 s'
);

CREATE TABLE revenue (
  total BIGINT,
  window_end TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'revenue',
  'format' = 'json'
);

INSERT INTO revenue
SELECT SUM(amount), window_end
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;
