-- The first and last value to arrive in each window, over retracted rows: the window answers once, as it closes.

CREATE TABLE parts (
  id BIGINT,
  who STRING,
  amount INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '20' SECOND,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'parts', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE ends (
  who STRING,
  starts TIMESTAMP(3),
  first_amount INT,
  last_amount INT,
  last_id BIGINT,
  n BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'ends', 'format' = 'json');

INSERT INTO ends
SELECT
  who,
  window_start,
  FIRST_VALUE(amount),
  LAST_VALUE(amount),
  LAST_VALUE(id) FILTER (WHERE amount > 5),
  COUNT(*)
FROM TUMBLE(TABLE parts, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
GROUP BY who, window_start, window_end;
