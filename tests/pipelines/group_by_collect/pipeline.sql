-- Multisets: collected of the rows of a group, which are retracted too; counted, unnested, read and written.

CREATE TABLE baskets (
  id BIGINT,
  who STRING,
  item STRING,
  tags MULTISET<STRING>,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'baskets',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE items (
  who STRING,
  items MULTISET<STRING>,
  different STRING MULTISET,
  n INT,
  PRIMARY KEY (who) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'items',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE tags (tag STRING, n BIGINT, PRIMARY KEY (tag) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'tags', 'key.format' = 'json', 'value.format' = 'json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO items
SELECT who, COLLECT(item), COLLECT(DISTINCT item) FILTER (WHERE item <> 'bread'), CARDINALITY(COLLECT(item))
FROM baskets
GROUP BY who;

INSERT INTO tags
SELECT tag, COUNT(*) FROM baskets CROSS JOIN UNNEST(tags) AS t (tag) GROUP BY tag;
END;
