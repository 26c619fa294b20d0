-- Folding a joined child table into its parent: the lists follow children that come, change and go, in the order of values.

CREATE TABLE users (
  id BIGINT,
  name STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'users', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE tags (
  id BIGINT,
  user_id BIGINT,
  tag STRING,
  `rank` INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'tags', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE folded (
  id BIGINT,
  name STRING,
  tags STRING,
  kinds STRING,
  high STRING,
  ranks ARRAY<INT>,
  json STRING,
  objects STRING,
  pairs BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'folded',
  'format' = 'debezium-json'
);

INSERT INTO folded
SELECT
  u.id,
  u.name,
  LISTAGG(t.tag, ', '),
  LISTAGG(DISTINCT t.tag),
  LISTAGG(t.tag, '/') FILTER (WHERE t.`rank` > 5),
  ARRAY_AGG(t.`rank`),
  JSON_ARRAYAGG(t.tag),
  JSON_ARRAYAGG(JSON_OBJECT('rank' VALUE t.`rank`, 'tag' VALUE t.tag) NULL ON NULL) FILTER (WHERE t.id IS NOT NULL),
  COUNT(DISTINCT t.tag, t.`rank`)
FROM users AS u
LEFT JOIN tags AS t ON u.id = t.user_id
GROUP BY u.id, u.name;
