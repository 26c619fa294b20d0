-- Clicks and their counts by page as JSON whose records name a schema of a registry. Test cases write this format as JSON.

CREATE TABLE clicks (page STRING, seconds INT) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json-registry', 'json-registry.url' = 'http://registry:8081'
);

CREATE TABLE pages (page STRING, clicks BIGINT, seconds INT, PRIMARY KEY (page) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'pages',
  'key.format' = 'json-registry', 'key.json-registry.url' = 'http://registry:8081',
  'value.format' = 'json-registry', 'value.json-registry.url' = 'http://registry:8081'
);

INSERT INTO pages SELECT page, COUNT(*), SUM(seconds) FROM clicks GROUP BY page;
