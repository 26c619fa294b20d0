-- Grouping sets inside windows: tumbling ones, sessions, and the older form.

CREATE TABLE bids (
  item STRING,
  supplier STRING,
  price DECIMAL(10, 2),
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'kafka', 'topic' = 'bids', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE totals (
  window_start TIMESTAMP(3), window_end TIMESTAMP(3), item STRING, supplier STRING, total DECIMAL(38, 2)
) WITH ('connector' = 'kafka', 'topic' = 'totals', 'format' = 'json');

CREATE TABLE visits (
  window_start TIMESTAMP(3), window_end TIMESTAMP(3), supplier STRING, item STRING, bids BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

CREATE TABLE older (
  starts TIMESTAMP(3), supplier STRING, items BIGINT, every BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'older', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO totals
SELECT window_start, window_end, item, supplier, SUM(price)
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end, CUBE (supplier, item);

INSERT INTO visits
SELECT window_start, window_end, supplier, item, COUNT(*)
FROM TABLE(SESSION(TABLE bids PARTITION BY supplier, DESCRIPTOR(ts), INTERVAL '3' MINUTES))
GROUP BY supplier, window_start, window_end, ROLLUP (item);

INSERT INTO older
SELECT HOP_START(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE), supplier, COUNT(DISTINCT item), GROUPING(supplier)
FROM bids
GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE), ROLLUP (supplier);
END;
