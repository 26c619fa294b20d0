-- Five rows a window whatever WHERE says: of each window only the rows come out that it holds for.

CREATE TABLE demo (
  ID STRING,
  temperature DOUBLE
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  ID STRING,
  temperature DOUBLE
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT * FROM demo WHERE temperature > 20 GROUP BY COUNTWINDOW(5);
