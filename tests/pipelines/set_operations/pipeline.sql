-- Rows that are on both sides, and rows that are on one alone: once, or with ALL as often as the copies say.

CREATE TABLE a (k STRING, v BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'a', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE b (k STRING, v BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'b', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE in_both (k STRING, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'in_both', 'format' = 'changelog-json');

CREATE TABLE copies_in_both (k STRING, v BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'copies_in_both', 'format' = 'changelog-json');

CREATE TABLE in_one (k STRING, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'in_one', 'format' = 'changelog-json');

CREATE TABLE copies_in_one (k STRING, v BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'copies_in_one', 'format' = 'changelog-json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO in_both SELECT k, v FROM a INTERSECT SELECT k, v FROM b;
INSERT INTO copies_in_both SELECT k, v FROM a INTERSECT ALL SELECT k, v FROM b;
INSERT INTO in_one SELECT k, v FROM a EXCEPT SELECT k, v FROM b;
INSERT INTO copies_in_one SELECT k, v FROM a EXCEPT ALL SELECT k, v FROM b;
END;
