-- OVER windows over retracted rows: a row counts as it is when the watermark reaches its time.

CREATE TABLE changes (
  id BIGINT,
  place STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'changes', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE readings (
  sensor BIGINT,
  place STRING,
  value_ BIGINT,
  ts TIMESTAMP(3),
  PRIMARY KEY (sensor) NOT ENFORCED,
  WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'readings',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE sums (id BIGINT, amount BIGINT, total BIGINT, near BIGINT, next_id BIGINT, place_of BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'sums', 'format' = 'json');

CREATE TABLE numbers (sensor BIGINT, number BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'numbers', 'format' = 'json');

CREATE TABLE lasts (sensor BIGINT, value_ BIGINT, last_value_ BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'lasts', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO sums
SELECT
  id,
  amount,
  SUM(amount) OVER (PARTITION BY place ORDER BY ts),
  COUNT(*) OVER (PARTITION BY place ORDER BY ts
    RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND INTERVAL '10' SECOND FOLLOWING),
  LEAD(id) OVER (PARTITION BY place ORDER BY ts),
  RANK() OVER (PARTITION BY place ORDER BY ts)
FROM changes;

INSERT INTO lasts
SELECT sensor, value_, LAG(value_, 1, 0) OVER (PARTITION BY place ORDER BY ts) FROM readings;

INSERT INTO numbers
SELECT sensor, ROW_NUMBER() OVER (PARTITION BY place ORDER BY ts) FROM readings;
END;
