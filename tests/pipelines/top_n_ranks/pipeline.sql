-- The second and third place of each race by RANK, and who is among the two best times by DENSE_RANK.

CREATE TABLE `result` (
  race STRING,
  runner STRING,
  seconds DECIMAL(6, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'result', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE places (
  race STRING,
  runner STRING,
  place BIGINT,
  PRIMARY KEY (race, runner) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'places',
  'format' = 'changelog-json'
);

CREATE TABLE best WITH ('topic' = 'best') LIKE places;

EXECUTE STATEMENT SET
BEGIN
INSERT INTO places
SELECT race, runner, place
FROM (SELECT *, RANK() OVER (PARTITION BY race ORDER BY seconds NULLS LAST) AS place FROM `result`)
WHERE place BETWEEN 2 AND 3;

INSERT INTO best
SELECT race, runner, place
FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY race ORDER BY seconds NULLS LAST) AS place FROM `result`)
WHERE 2 >= place;
END;
