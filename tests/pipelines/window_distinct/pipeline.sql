-- SELECT DISTINCT of windows, and windows of several queries put together: each is answered once, when it closes.

CREATE TABLE visits (
  who STRING,
  ts TIMESTAMP(3),
  arrival AS PROCTIME(),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'visits', 'format' = 'json');

CREATE TABLE calls (
  who STRING,
  seconds INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'calls', 'format' = 'json');

CREATE TABLE guests (
  ends TIMESTAMP(3),
  who STRING
) WITH ('connector' = 'kafka', 'topic' = 'guests', 'format' = 'json');

CREATE TABLE arrived WITH ('topic' = 'arrived') LIKE guests;
CREATE TABLE seen WITH ('topic' = 'seen') LIKE guests;

CREATE TABLE how_many (starts TIMESTAMP(3), n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'how_many', 'format' = 'json');
CREATE TABLE of_both WITH ('topic' = 'of_both') LIKE how_many;
CREATE TABLE by_minute WITH ('topic' = 'by_minute') LIKE how_many;

CREATE VIEW visited AS SELECT * FROM TUMBLE(TABLE visits, DESCRIPTOR(ts), INTERVAL '10' SECOND);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO guests SELECT window_end, who FROM (SELECT DISTINCT window_end, who, window_start FROM visited);

INSERT INTO arrived
SELECT window_end, who
FROM (
  SELECT DISTINCT window_start, window_end, who
  FROM TUMBLE(TABLE visits, DESCRIPTOR(arrival), INTERVAL '10' SECOND)
);

INSERT INTO seen
SELECT window_end, who
FROM (
  SELECT who, window_start, window_end FROM visited
  UNION
  SELECT who, window_start, window_end FROM TUMBLE(TABLE calls, DESCRIPTOR(ts), INTERVAL '10' SECOND)
);

INSERT INTO how_many
SELECT window_start, COUNT(*)
FROM (SELECT DISTINCT who, window_start, window_end FROM visited)
GROUP BY window_start, window_end;

INSERT INTO of_both
SELECT window_start, SUM(n)
FROM (
  SELECT window_start, window_end, COUNT(*) AS n FROM visited GROUP BY window_start, window_end
  UNION ALL
  SELECT window_start, window_end, CAST(SUM(seconds) AS BIGINT)
  FROM TUMBLE(TABLE calls, DESCRIPTOR(ts), INTERVAL '10' SECOND)
  GROUP BY window_start, window_end
)
GROUP BY window_start, window_end;

INSERT INTO by_minute
SELECT window_start, COUNT(*)
FROM TUMBLE(
  DATA => (SELECT DISTINCT who, window_time AS t, window_start AS s, window_end AS e FROM visited),
  TIMECOL => DESCRIPTOR(t), SIZE => INTERVAL '1' MINUTE)
GROUP BY window_start, window_end;
END;
