-- An hour over minutes that answer early and late: it takes back what the minutes take back.

SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.early-fire.delay' = '0 s';
SET 'table.exec.emit.late-fire.enabled' = 'true';
SET 'table.exec.emit.late-fire.delay' = '0 s';
SET 'table.exec.emit.allow-lateness' = '1 min';

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');

CREATE TABLE best (
  starts TIMESTAMP(3),
  most BIGINT,
  people BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'best', 'format' = 'debezium-json');

CREATE VIEW minutes AS
SELECT user_id, window_time AS mt, SUM(amount) AS total
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
GROUP BY user_id, window_start, window_end, window_time;

INSERT INTO best
SELECT TUMBLE_START(mt, INTERVAL '1' HOUR), MAX(total), COUNT(*)
FROM minutes
GROUP BY TUMBLE(mt, INTERVAL '1' HOUR);
