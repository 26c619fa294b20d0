-- Joins that read no column of one side, or of both: its rows count all the same.

CREATE TABLE l (id INT) WITH (
  'connector' = 'kafka', 'topic' = 'l', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE r (v INT) WITH (
  'connector' = 'kafka', 'topic' = 'r', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE crossed (id INT) WITH ('connector' = 'kafka', 'topic' = 'crossed', 'format' = 'changelog-json');
CREATE TABLE pairs (n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'pairs', 'format' = 'changelog-json');
CREATE TABLE padded (id INT) WITH ('connector' = 'kafka', 'topic' = 'padded', 'format' = 'changelog-json');
CREATE TABLE present (id INT) WITH ('connector' = 'kafka', 'topic' = 'present', 'format' = 'changelog-json');
CREATE TABLE absent (id INT) WITH ('connector' = 'kafka', 'topic' = 'absent', 'format' = 'changelog-json');
CREATE TABLE counted (id INT) WITH ('connector' = 'kafka', 'topic' = 'counted', 'format' = 'changelog-json');

INSERT INTO crossed SELECT l.id FROM l CROSS JOIN r;
INSERT INTO pairs SELECT COUNT(*) FROM l CROSS JOIN r;
INSERT INTO padded SELECT l.id FROM l LEFT JOIN r ON l.id > 1;
INSERT INTO present SELECT id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE l.id > 1);
INSERT INTO absent SELECT id FROM l WHERE NOT EXISTS (SELECT 1 FROM r);
INSERT INTO counted SELECT l.id FROM l, (SELECT COUNT(*) FROM r) AS total;
