-- Equal rows of a stream without a key count one by one, and are retracted one by one.

CREATE TABLE a (
  k BIGINT,
  x STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'a', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE b (
  k BIGINT,
  y STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'b', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE pairs (
  x STRING,
  y STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'pairs',
  'format' = 'changelog-json'
);

INSERT INTO pairs
SELECT a.x, b.y FROM a JOIN b ON a.k = b.k;
