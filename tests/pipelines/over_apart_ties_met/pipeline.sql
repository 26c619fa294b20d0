-- Windows of different partitions: rows that have met another one, and elements of lists, are in the order of their
-- records; rows that may be retracted are in that of their values.

CREATE TABLE visits (
  id BIGINT,
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE names (
  who STRING,
  name STRING,
  ts TIMESTAMP(3),
  PRIMARY KEY (who) NOT ENFORCED,
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'names', 'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE orders (
  id BIGINT,
  who STRING,
  page STRING,
  ts TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED,
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'orders', 'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE named (id BIGINT, name STRING, before_of_who BIGINT, before_on_page BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'named', 'format' = 'json');

CREATE TABLE elements (id BIGINT, element INT, of_who BIGINT, before_on_page BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'elements', 'format' = 'json');

CREATE TABLE kept (id BIGINT, before_of_who BIGINT, before_on_page BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'kept', 'format' = 'json');

EXECUTE STATEMENT SET
BEGIN
INSERT INTO named
SELECT id, name, LAG(id) OVER (PARTITION BY who ORDER BY ts), LAG(id) OVER (PARTITION BY page ORDER BY ts)
FROM (
  SELECT v.id, v.who, v.page, v.ts, n.name
  FROM visits AS v LEFT JOIN names FOR SYSTEM_TIME AS OF v.ts AS n ON v.who = n.who
);

INSERT INTO elements
SELECT
  id,
  element,
  COUNT(*) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
  LAG(id * 10 + element) OVER (PARTITION BY page ORDER BY ts)
FROM visits CROSS JOIN UNNEST(ARRAY[2, 1]) AS list (element);

INSERT INTO kept
SELECT id, LAG(id) OVER (PARTITION BY who ORDER BY ts), LAG(id) OVER (PARTITION BY page ORDER BY ts)
FROM orders;
END;
