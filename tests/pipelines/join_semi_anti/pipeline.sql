-- Rows whose value is among those of another table, and rows whose value is not. A NULL on the right makes NOT IN unknown
-- for all; of a left row that is NULL it is unknown unless the right table is empty.

CREATE TABLE l (a BIGINT, c STRING) WITH (
  'connector' = 'kafka', 'topic' = 'l', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE r (d BIGINT, f STRING) WITH (
  'connector' = 'kafka', 'topic' = 'r', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE among (a BIGINT, c STRING) WITH (
  'connector' = 'kafka', 'topic' = 'among', 'format' = 'changelog-json'
);

CREATE TABLE apart (a BIGINT, c STRING) WITH (
  'connector' = 'kafka', 'topic' = 'apart', 'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO among
SELECT * FROM l WHERE a IN (SELECT d FROM r);

INSERT INTO apart
SELECT * FROM l WHERE a NOT IN (SELECT d FROM r);
END;
