-- The two players with the most points: totals change, so players enter the top, leave it and come back.

CREATE TABLE goals (
  player STRING,
  points INT
) WITH (
  'connector' = 'kafka', 'topic' = 'goals', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE top (
  place BIGINT,
  player STRING,
  points BIGINT,
  PRIMARY KEY (place) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'top',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE leaders (
  player STRING,
  points BIGINT,
  PRIMARY KEY (player) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'leaders',
  'format' = 'changelog-json'
);

CREATE VIEW totals AS
SELECT player, SUM(CAST(points AS BIGINT)) AS points FROM goals GROUP BY player;

EXECUTE STATEMENT SET
BEGIN
INSERT INTO top
SELECT place, player, points
FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY points DESC) AS place FROM totals)
WHERE place <= 2;

INSERT INTO leaders
SELECT player, points FROM totals
QUALIFY RANK() OVER (ORDER BY points DESC) <= 2;
END;
