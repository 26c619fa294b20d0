-- A live stream of orders, answered in two ways. `tailrace demo` runs this file.

CREATE TABLE orders (
  order_id BIGINT,
  user_id STRING,
  product STRING,
  amount DECIMAL(10, 2),
  ts TIMESTAMP(3),
  -- Orders may come up to two seconds out of order.
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'scan.startup.mode' = 'earliest-offset',
  -- A partition that falls silent does not hold the others back for longer than this.
  'scan.watermark.idle-timeout' = '5 s',
  'format' = 'json'
);

-- What each product brought in, every ten seconds: a row once its window has closed, never corrected.
CREATE TABLE revenue (
  product STRING,
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  orders BIGINT,
  revenue DECIMAL(38, 2)
) WITH (
  'connector' = 'kafka',
  'topic' = 'revenue',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'format' = 'json',
  -- As people read it: 3382.20 and not 3382.2, never 3.4E+3.
  'json.encode.decimal-as-plain-number' = 'true'
);

-- What each user has spent so far: an answer that changes, so each change takes the row before it back.
CREATE TABLE spending (
  user_id STRING,
  orders BIGINT,
  spent DECIMAL(38, 2),
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'spending',
  'properties.bootstrap.servers' = '${KAFKA:-localhost:9092}',
  'format' = 'changelog-json',
  'changelog-json.encode.decimal-as-plain-number' = 'true'
);

EXECUTE STATEMENT SET
BEGIN

  INSERT INTO revenue
  SELECT product, window_start, window_end, COUNT(*), SUM(amount)
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY product, window_start, window_end;

  INSERT INTO spending
  SELECT user_id, COUNT(*), SUM(amount)
  FROM orders
  GROUP BY user_id;

END;
