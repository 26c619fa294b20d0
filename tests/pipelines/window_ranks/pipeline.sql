-- Where each bid stands among all of its ten seconds: answered when they are over.

CREATE TABLE bid (
  id BIGINT,
  price DECIMAL(10, 2),
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'bid', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE ranks (
  id BIGINT,
  window_end TIMESTAMP(3),
  half BIGINT,
  above DOUBLE,
  share DOUBLE,
  place BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'ranks',
  'format' = 'json'
);

INSERT INTO ranks
SELECT id, window_end, half, above, share, place
FROM (
  SELECT
    *,
    NTILE(2) OVER w AS half,
    PERCENT_RANK() OVER w AS above,
    CUME_DIST() OVER w AS share,
    RANK() OVER w AS place
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  WINDOW w AS (PARTITION BY window_start, window_end ORDER BY price DESC)
)
WHERE above <= 0.5;
