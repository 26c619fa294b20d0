-- All columns that both sides have are compared, and are there once and first.

CREATE TABLE stock (place STRING, item STRING, amount INT) WITH (
  'connector' = 'kafka', 'topic' = 'stock', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE wanted (item STRING, who STRING, place STRING) WITH (
  'connector' = 'kafka', 'topic' = 'wanted', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'
);

CREATE TABLE offers (place STRING, item STRING, amount INT, who STRING) WITH (
  'connector' = 'kafka', 'topic' = 'offers', 'format' = 'changelog-json'
);

CREATE TABLE wishes (place STRING, item STRING, amount INT, who STRING) WITH (
  'connector' = 'kafka', 'topic' = 'wishes', 'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO offers SELECT * FROM stock NATURAL JOIN wanted;

INSERT INTO wishes SELECT * FROM stock NATURAL RIGHT JOIN wanted;
END;
