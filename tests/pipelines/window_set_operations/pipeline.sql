-- Rows of one window are compared when it closes: nothing is corrected, and the windows are grouped by again.

CREATE TABLE l (
  k STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'l', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE r (
  k STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'r', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE VIEW lw AS
SELECT window_start, window_end, k FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND));
CREATE VIEW rw AS
SELECT window_start, window_end, k FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '10' SECOND));

CREATE TABLE in_both (since TIMESTAMP(3), k STRING) WITH ('connector' = 'kafka', 'topic' = 'in_both', 'format' = 'json');

CREATE TABLE copies_in_both (since TIMESTAMP(3), k STRING)
WITH ('connector' = 'kafka', 'topic' = 'copies_in_both', 'format' = 'json');

CREATE TABLE in_one (since TIMESTAMP(3), k STRING) WITH ('connector' = 'kafka', 'topic' = 'in_one', 'format' = 'json');

CREATE TABLE copies_in_one (since TIMESTAMP(3), k STRING)
WITH ('connector' = 'kafka', 'topic' = 'copies_in_one', 'format' = 'json');

CREATE TABLE in_any (since TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'in_any', 'format' = 'json');

CREATE TABLE seen (since TIMESTAMP(3), k STRING) WITH ('connector' = 'kafka', 'topic' = 'seen', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO in_both SELECT window_start, k FROM (SELECT * FROM lw INTERSECT SELECT * FROM rw);
INSERT INTO copies_in_both SELECT window_start, k FROM (SELECT * FROM lw INTERSECT ALL SELECT * FROM rw);
INSERT INTO in_one SELECT window_start, k FROM (SELECT * FROM lw EXCEPT SELECT * FROM rw);
INSERT INTO copies_in_one SELECT window_start, k FROM (SELECT * FROM lw EXCEPT ALL SELECT * FROM rw);
INSERT INTO in_any
SELECT window_start, COUNT(*) FROM (SELECT * FROM lw UNION SELECT * FROM rw) GROUP BY window_start, window_end;
INSERT INTO seen SELECT window_start, k FROM (SELECT DISTINCT window_start, window_end, k FROM lw);
END;
