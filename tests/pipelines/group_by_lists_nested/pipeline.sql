-- Lists of arrays, maps and rows over retracted rows; DISTINCT over several columns.

CREATE TABLE parts (
  id BIGINT,
  who STRING,
  size ROW<w INT, h STRING>,
  stock MAP<STRING, INT>,
  sold DATE,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'parts', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE listed (
  who STRING,
  sizes STRING,
  stocks STRING,
  days ARRAY<DATE>,
  size_rows ARRAY<ROW<w INT, h STRING>>,
  kinds BIGINT,
  PRIMARY KEY (who) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'listed',
  'format' = 'debezium-json'
);

INSERT INTO listed
SELECT
  who,
  JSON_ARRAYAGG(size),
  JSON_ARRAYAGG(stock NULL ON NULL),
  ARRAY_AGG(DISTINCT sold),
  ARRAY_AGG(size),
  COUNT(DISTINCT sold, size)
FROM parts
GROUP BY who;
