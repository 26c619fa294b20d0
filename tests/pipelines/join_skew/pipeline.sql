-- A hot key is distributed over shards, whichever type it is compared as; each pair is there once all the same.

CREATE TABLE clicks (page INT, who STRING) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE pages (id BIGINT, title STRING) WITH (
  'connector' = 'kafka', 'topic' = 'pages', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE seen (page INT, who STRING, title STRING) WITH (
  'connector' = 'kafka', 'topic' = 'seen', 'format' = 'changelog-json'
);

CREATE TABLE known (who STRING) WITH (
  'connector' = 'kafka', 'topic' = 'known', 'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO seen
SELECT /*+ SKEW('c', 'page', 1) */ c.page, c.who, p.title
FROM clicks AS c LEFT JOIN pages AS p ON c.page = p.id;

INSERT INTO known
SELECT /*+ SKEW('clicks', 'page') */ who FROM clicks WHERE page IN (SELECT id FROM pages);
END;
