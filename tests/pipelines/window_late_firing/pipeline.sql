-- A window answers when it closes, and for a minute after that again for late rows; rows that are later go to nowhere.

SET 'table.exec.emit.late-fire.enabled' = 'true';
SET 'table.exec.emit.late-fire.delay' = '0 s';
SET 'table.exec.emit.allow-lateness' = '1 min';

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');

CREATE TABLE revenue (
  user_id STRING,
  ends TIMESTAMP(3),
  total BIGINT,
  people BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'revenue', 'format' = 'changelog-json');

INSERT INTO revenue
SELECT user_id, window_end, SUM(amount), COUNT(DISTINCT amount)
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
GROUP BY user_id, window_start, window_end;
