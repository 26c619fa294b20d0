-- Columns of USING and NATURAL JOIN are shown once and first; in a FULL JOIN they are of the side that is there.

CREATE TABLE stock (
  place STRING,
  item STRING,
  amount INT
) WITH (
  'connector' = 'kafka', 'topic' = 'stock', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE demand (
  wanted INT,
  item STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'demand', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE price (
  item STRING,
  cents BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'price', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE everything (
  item STRING,
  place STRING,
  amount INT,
  wanted INT,
  cents BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'everything', 'format' = 'changelog-json'
);

CREATE TABLE prices (
  item STRING,
  place STRING,
  amount INT,
  wanted INT,
  cents BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'prices', 'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO everything SELECT * FROM stock NATURAL FULL JOIN demand FULL JOIN price USING (item);

INSERT INTO prices SELECT * FROM (stock JOIN demand USING (item)) RIGHT JOIN price USING (item);
END;
