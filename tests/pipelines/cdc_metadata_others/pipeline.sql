-- What Canal and GoldenGate say beside their rows, in two streams of changes that are put together.

CREATE TABLE canal (
  id INT,
  origin STRING METADATA FROM 'value.table' VIRTUAL,
  keys ARRAY<STRING> METADATA FROM 'value.pk-names' VIRTUAL,
  types MAP<STRING, INT> METADATA FROM 'value.sql-type' VIRTUAL,
  changed_at TIMESTAMP_LTZ(3) METADATA FROM 'value.event-timestamp' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = 'canal', 'scan.startup.mode' = 'earliest-offset', 'format' = 'canal-json'
);

CREATE TABLE ogg (
  id INT,
  origin STRING METADATA FROM 'value.table' VIRTUAL,
  keys ARRAY<STRING> METADATA FROM 'value.primary-keys' VIRTUAL,
  changed_at TIMESTAMP_LTZ(6) METADATA FROM 'value.event-timestamp' VIRTUAL
) WITH (
  'connector' = 'kafka', 'topic' = 'ogg', 'scan.startup.mode' = 'earliest-offset', 'format' = 'ogg-json'
);

CREATE TABLE seen (
  id INT,
  origin STRING,
  first_key STRING,
  type_of_id INT,
  changed_at TIMESTAMP_LTZ(6)
) WITH ('connector' = 'kafka', 'topic' = 'seen', 'format' = 'changelog-json');

INSERT INTO seen
SELECT id, origin, keys[1], types['id'], changed_at FROM canal
UNION ALL
SELECT id, origin, keys[1], CAST(NULL AS INT), changed_at FROM ogg;
