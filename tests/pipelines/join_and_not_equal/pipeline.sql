-- Rows meet by equality and by a comparison beside it.

CREATE TABLE A (a1 BIGINT, a2 BIGINT, a3 STRING) WITH (
  'connector' = 'kafka', 'topic' = 'a', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE B (b1 BIGINT, b2 BIGINT, b3 STRING) WITH (
  'connector' = 'kafka', 'topic' = 'b', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE pairs (a1 BIGINT, b1 BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'pairs', 'format' = 'changelog-json'
);

INSERT INTO pairs
SELECT a1, b1 FROM A JOIN B ON a1 = b1 and a2 > b2;
