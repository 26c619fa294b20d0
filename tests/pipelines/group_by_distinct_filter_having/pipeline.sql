-- COUNT DISTINCT, FILTER and HAVING: a group that HAVING no longer lets through is deleted.

CREATE TABLE visits (
  page STRING,
  user_id STRING,
  seconds BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'visits', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE pages (
  page STRING,
  users BIGINT,
  long_visits BIGINT,
  PRIMARY KEY (page) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'pages',
  'format' = 'debezium-json'
);

INSERT INTO pages
SELECT page, COUNT(DISTINCT user_id), COUNT(*) FILTER (WHERE seconds >= 60)
FROM visits
GROUP BY page
HAVING COUNT(*) < 4;
