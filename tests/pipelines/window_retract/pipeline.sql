-- Windows over retracted rows: each window counts the rows that it has when it closes, and is answered once.

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

CREATE TABLE latest (place STRING, window_end TIMESTAMP(3), sensors BIGINT, highest BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'latest', 'format' = 'json');

CREATE TABLE totals (window_start TIMESTAMP(3), n BIGINT, amount BIGINT, lowest BIGINT, places BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'totals', 'format' = 'json');

CREATE TABLE visits (place STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, highest BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

CREATE TABLE kept (id BIGINT, window_start TIMESTAMP(3), window_end TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'kept', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO latest
SELECT place, TUMBLE_END(ts, INTERVAL '1' MINUTE), COUNT(*), MAX(value_)
FROM readings
GROUP BY place, TUMBLE(ts, INTERVAL '1' MINUTE);

INSERT INTO totals
SELECT window_start, COUNT(*), SUM(amount), MIN(amount), COUNT(DISTINCT place)
FROM TABLE(HOP(TABLE changes, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE))
GROUP BY window_start, window_end;

INSERT INTO visits
SELECT place, window_start, window_end, COUNT(*), MAX(amount)
FROM TABLE(SESSION(TABLE changes PARTITION BY place, DESCRIPTOR(ts), INTERVAL '15' SECOND))
GROUP BY place, window_start, window_end;

INSERT INTO kept
SELECT id, window_start, window_end
FROM TABLE(SESSION(TABLE changes PARTITION BY place, DESCRIPTOR(ts), INTERVAL '15' SECOND));
END;
