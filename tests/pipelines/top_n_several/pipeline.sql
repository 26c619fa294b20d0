-- Several ranks in one SELECT: players that are among the best two of their team and the best three of all, by points and by
-- age; all ranks of the first by one of them, over players and over a stream; and numbers by time, that are final.

CREATE TABLE players (
  id INT,
  team STRING,
  points INT,
  age INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'players', 'key.format' = 'json', 'value.format' = 'json');

CREATE TABLE shots (
  id INT,
  team STRING,
  speed INT,
  ts TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED,
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'upsert-kafka', 'topic' = 'shots', 'key.format' = 'json', 'value.format' = 'json');

CREATE TABLE throws (team STRING, speed INT) WITH ('connector' = 'kafka', 'topic' = 'throws', 'format' = 'json');

CREATE TABLE best (
  id INT,
  in_team BIGINT,
  of_all BIGINT,
  by_age BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'best', 'format' = 'changelog-json');

CREATE TABLE ranks (
  id INT,
  points INT,
  n BIGINT,
  r BIGINT,
  d BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'ranks', 'format' = 'changelog-json');

CREATE TABLE fastest (
  team STRING,
  speed INT,
  n BIGINT,
  r BIGINT,
  d BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'fastest', 'format' = 'changelog-json');

CREATE TABLE numbered (
  id INT,
  n BIGINT,
  r BIGINT,
  of_all BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'numbered', 'format' = 'changelog-json');

CREATE TABLE by_team (
  team STRING,
  players BIGINT,
  by_points BIGINT,
  by_players BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'by_team', 'format' = 'changelog-json');

EXECUTE STATEMENT SET
BEGIN
INSERT INTO best
SELECT id, in_team, of_all, by_age
FROM (
  SELECT *,
    ROW_NUMBER() OVER (PARTITION BY team ORDER BY points DESC) AS in_team,
    RANK() OVER (ORDER BY points DESC) AS of_all,
    DENSE_RANK() OVER (ORDER BY age) AS by_age
  FROM players
)
WHERE in_team <= 2 AND of_all <= 3 AND by_age <= 4;

INSERT INTO ranks
SELECT id, points, ROW_NUMBER() OVER w AS n, RANK() OVER w AS r, DENSE_RANK() OVER w AS d
FROM players
QUALIFY r <= 2 AND d BETWEEN 1 AND 9
WINDOW w AS (ORDER BY points DESC);

INSERT INTO fastest
SELECT team, speed, ROW_NUMBER() OVER w AS n, RANK() OVER w AS r, DENSE_RANK() OVER w AS d
FROM throws
QUALIFY n BETWEEN 2 AND 3
WINDOW w AS (PARTITION BY team ORDER BY speed DESC);

INSERT INTO numbered
SELECT id, ROW_NUMBER() OVER w, RANK() OVER w, ROW_NUMBER() OVER (ORDER BY ts) FROM shots
WINDOW w AS (PARTITION BY team ORDER BY ts);

INSERT INTO by_team
SELECT team, COUNT(*), RANK() OVER (ORDER BY SUM(points) DESC) AS r, RANK() OVER (ORDER BY COUNT(*) DESC) AS m
FROM players
GROUP BY team
QUALIFY r <= 2 AND m <= 2;
END;
