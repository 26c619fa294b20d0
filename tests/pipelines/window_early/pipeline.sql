-- Windows that answer with every batch: +I at first, -U and +U when rows come, and nothing more once they have closed.

SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.early-fire.delay' = '0 s';

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');

CREATE TABLE revenue (
  user_id STRING,
  starts TIMESTAMP(3),
  total BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'revenue', 'format' = 'debezium-json');

INSERT INTO revenue
SELECT user_id, window_start, SUM(amount)
FROM HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)
GROUP BY user_id, window_start, window_end;
