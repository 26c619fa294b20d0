-- Windows of the last five rows, one every two rows: they come with the rows 6, 8 and 10.

CREATE TABLE demo (
  n BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'demo', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE result (
  first_row BIGINT,
  last_row BIGINT,
  number_of_rows BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'result',
  'format' = 'json'
);

INSERT INTO result
SELECT MIN(n), MAX(n), COUNT(*) FROM demo GROUP BY COUNTWINDOW(5, 2);
