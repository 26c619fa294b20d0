-- An hour answers every ten seconds of processing time, counted from its first row, and when it closes.

SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.early-fire.delay' = '10 s';

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');

CREATE TABLE revenue (
  user_id STRING,
  starts TIMESTAMP(3),
  total BIGINT,
  PRIMARY KEY (user_id, starts) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'revenue', 'key.format' = 'json', 'value.format' = 'json');

INSERT INTO revenue
SELECT user_id, TUMBLE_START(ts, INTERVAL '1' HOUR), SUM(amount)
FROM orders
GROUP BY user_id, TUMBLE(ts, INTERVAL '1' HOUR);
