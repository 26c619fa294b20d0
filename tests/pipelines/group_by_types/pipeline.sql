-- Groups by values of any type: lists and rows, bytes, NULLs, and a zero of either sign.

CREATE TABLE samples (
  list ARRAY<INT>,
  pair ROW<x INT, y STRING>,
  number DOUBLE,
  `bytes` BYTES
) WITH (
  'connector' = 'kafka', 'topic' = 'samples', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE counts (
  list ARRAY<INT>,
  pair ROW<x INT, y STRING>,
  number DOUBLE,
  `bytes` BYTES,
  n BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'counts',
  'format' = 'changelog-json'
);

INSERT INTO counts
SELECT list, pair, number, `bytes`, COUNT(*) FROM samples GROUP BY list, pair, number, `bytes`;
