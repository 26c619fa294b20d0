-- SELECT DISTINCT is a group without aggregates: a row that comes again says nothing new.

CREATE TABLE visits (
  page STRING,
  user_id STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE pages (
  page STRING,
  user_id STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'pages',
  'format' = 'changelog-json'
);

INSERT INTO pages
SELECT DISTINCT page, user_id FROM visits;
