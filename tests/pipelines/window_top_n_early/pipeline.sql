-- The best two of each minute, over totals that answer early: by event time once for each minute, also where rows were
-- late; by processing time when the clock has passed the minute.

SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.early-fire.delay' = '0 s';
SET 'table.exec.emit.late-fire.enabled' = 'true';
SET 'table.exec.emit.late-fire.delay' = '0 s';
SET 'table.exec.emit.allow-lateness' = '10 s';

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  arrival AS PROCTIME(),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');

CREATE TABLE best (
  starts TIMESTAMP(3),
  user_id STRING,
  total BIGINT,
  place BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'best', 'format' = 'json');

CREATE TABLE arrived WITH ('topic' = 'arrived') LIKE best;

EXECUTE STATEMENT SET
BEGIN
INSERT INTO best
SELECT window_start, user_id, total, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC) AS n
FROM (
  SELECT user_id, window_start, window_end, SUM(amount) AS total
  FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
  GROUP BY user_id, window_start, window_end
)
QUALIFY n <= 2;

INSERT INTO arrived
SELECT window_start, user_id, total, RANK() OVER (PARTITION BY window_start, window_end ORDER BY total DESC) AS n
FROM (
  SELECT user_id, window_start, window_end, SUM(amount) AS total
  FROM TUMBLE(TABLE orders, DESCRIPTOR(arrival), INTERVAL '1' MINUTE)
  GROUP BY user_id, window_start, window_end
)
QUALIFY n <= 2;
END;
