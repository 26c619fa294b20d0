-- Subtotals: every row is grouped once for each grouping set. A NULL of the data differs from that of a subtotal by GROUPING.

CREATE TABLE stock (
  id BIGINT,
  place STRING,
  kind STRING,
  amount BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'stock', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE cubes (
  place STRING, kind STRING, items BIGINT, amount BIGINT, bits BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'cubes', 'format' = 'changelog-json');

CREATE TABLE repeated (
  place STRING, kinds BIGINT, nth BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'repeated', 'format' = 'changelog-json');

CREATE TABLE places (
  place STRING, amount BIGINT, total BOOLEAN
) WITH ('connector' = 'kafka', 'topic' = 'places', 'format' = 'changelog-json');

EXECUTE STATEMENT SET BEGIN
INSERT INTO cubes
SELECT place, kind, COUNT(*), SUM(amount), GROUPING(place, kind) FROM stock GROUP BY CUBE (place, kind);

-- What is grouped by is also counted: the count is of the rows, not of the NULLs that stand for all kinds.
INSERT INTO repeated
SELECT place, COUNT(DISTINCT kind), GROUP_ID() FROM stock GROUP BY place, GROUPING SETS ((kind), (), ());

INSERT INTO places
SELECT place, SUM(amount), GROUPING(place) = 1 FROM stock GROUP BY ROLLUP (place) HAVING GROUPING_ID(place) = 1 OR place <> 'oslo';
END;
