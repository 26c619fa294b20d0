-- Rows of one window are joined when it closes: nothing is corrected, and a row without a partner is known to have none.

CREATE TABLE l (
  k STRING,
  v BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'l', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE r (
  k STRING,
  w BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'r', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE VIEW lw AS SELECT * FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND));
CREATE VIEW rw AS SELECT * FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '10' SECOND));

CREATE TABLE paired (
  k STRING,
  v BIGINT,
  w BIGINT,
  since TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'paired', 'format' = 'json');

CREATE TABLE known (k STRING, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'known', 'format' = 'json');

CREATE TABLE unknown (k STRING, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'unknown', 'format' = 'json');

CREATE TABLE counted (
  since TIMESTAMP(3),
  n BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'counted', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN

INSERT INTO paired
SELECT COALESCE(lw.k, rw.k), v, w, COALESCE(lw.window_start, rw.window_start)
FROM lw FULL JOIN rw
  ON lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end AND v < w;

INSERT INTO known
SELECT k, v FROM lw WHERE (k, window_start, window_end) IN (SELECT k, window_start, window_end FROM rw);

INSERT INTO unknown
SELECT k, v FROM lw
WHERE NOT EXISTS (
  SELECT * FROM rw WHERE lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end
);

-- The result carries the windows on.
INSERT INTO counted
SELECT lw.window_start, COUNT(*)
FROM lw JOIN rw ON lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end
GROUP BY lw.window_start, lw.window_end;

END;
