-- Constant rows: written as they are, joined to a stream, and a row of a SELECT without FROM; each once.

CREATE TABLE orders (
  id BIGINT,
  country STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE names (
  code STRING,
  name STRING,
  tax DECIMAL(4, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'names',
  'format' = 'json'
);

CREATE TABLE named (
  id BIGINT,
  name STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'named',
  'format' = 'json'
);

CREATE VIEW countries (code, name) AS VALUES ('it', 'Italy'), ('no', 'Norway'), ('it', CAST(NULL AS STRING));

EXECUTE STATEMENT SET
BEGIN
INSERT INTO names VALUES ('it', 'Italy', 22), ('no', NULL, 0.25);
INSERT INTO names SELECT 'xx' AS code, UPPER('none') AS name, 1;
INSERT INTO named SELECT o.id, c.name FROM orders AS o JOIN countries AS c ON o.country = c.code;
END;
