-- Of sightings of one time: the last row is the one that arrived last, in a window and without one; where two rows are
-- kept, or the first one, rows of one time are in their order of arrival.

CREATE TABLE seen (
  truck STRING,
  place STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'seen', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE last_in_window (
  truck STRING,
  place STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'last_in_window',
  'format' = 'json'
);

CREATE TABLE two_in_window WITH ('topic' = 'two_in_window') LIKE last_in_window;
CREATE TABLE first_in_window WITH ('topic' = 'first_in_window') LIKE last_in_window;
CREATE TABLE last_renamed WITH ('topic' = 'last_renamed') LIKE last_in_window;
CREATE TABLE greatest_in_window WITH ('topic' = 'greatest_in_window') LIKE last_in_window;
CREATE TABLE last_of_all WITH ('topic' = 'last_of_all', 'format' = 'changelog-json') LIKE last_in_window;
CREATE TABLE two_of_all WITH ('topic' = 'two_of_all', 'format' = 'changelog-json') LIKE last_in_window;

CREATE VIEW windows AS
SELECT * FROM TABLE(TUMBLE(TABLE seen, DESCRIPTOR(ts), INTERVAL '10' SECOND));

EXECUTE STATEMENT SET
BEGIN
INSERT INTO last_in_window
SELECT truck, place FROM windows
QUALIFY ROW_NUMBER() OVER (PARTITION BY truck, window_start, window_end ORDER BY ts DESC) = 1;

INSERT INTO two_in_window
SELECT truck, place FROM windows
QUALIFY ROW_NUMBER() OVER (PARTITION BY truck, window_start, window_end ORDER BY ts DESC) <= 2;

INSERT INTO first_in_window
SELECT truck, place FROM windows
QUALIFY ROW_NUMBER() OVER (PARTITION BY truck, window_start, window_end ORDER BY ts) = 1;

INSERT INTO last_renamed
SELECT truck, place
FROM (SELECT place, window_end AS e, window_start AS s, ts AS time_of, truck FROM windows)
QUALIFY ROW_NUMBER() OVER (PARTITION BY truck, s, e ORDER BY time_of DESC) = 1;

INSERT INTO greatest_in_window
SELECT truck, place FROM windows
QUALIFY ROW_NUMBER() OVER (PARTITION BY truck, window_start, window_end ORDER BY place DESC, ts DESC) = 1;

INSERT INTO last_of_all
SELECT truck, place FROM seen QUALIFY ROW_NUMBER() OVER (PARTITION BY truck ORDER BY ts DESC) = 1;

INSERT INTO two_of_all
SELECT truck, place FROM seen QUALIFY ROW_NUMBER() OVER (PARTITION BY truck ORDER BY ts DESC) <= 2;
END;
