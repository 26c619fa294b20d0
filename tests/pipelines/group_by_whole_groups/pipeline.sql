-- Answers that depend on all values of a group, over retracted rows; and in windows and frames of the same rows.

CREATE TABLE parts (
  id BIGINT,
  who STRING,
  kind STRING,
  amount INT,
  ts TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED,
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'parts', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE orders (
  amount INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE answers (
  who STRING,
  middle DOUBLE,
  ends ARRAY<DOUBLE>,
  kinds STRING,
  `both` INT,
  `either` INT,
  odd INT,
  PRIMARY KEY (who) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'answers',
  'format' = 'debezium-json'
);

CREATE TABLE by_minute (
  minute_start TIMESTAMP(3),
  middle DOUBLE,
  kinds STRING,
  `both` INT
) WITH (
  'connector' = 'kafka', 'topic' = 'by_minute',
  'format' = 'json'
);

CREATE TABLE lately (
  amount INT,
  middle DOUBLE,
  `either` INT,
  odd_so_far INT
) WITH (
  'connector' = 'kafka', 'topic' = 'lately',
  'format' = 'json'
);

INSERT INTO answers
SELECT
  who,
  PERCENTILE(amount, 0.5),
  PERCENTILE(amount, ARRAY[0, 0.9, 1]),
  JSON_OBJECTAGG(KEY kind VALUE amount ABSENT ON NULL),
  BIT_AND(amount),
  BIT_OR(amount),
  BIT_XOR(amount)
FROM parts
GROUP BY who;

INSERT INTO by_minute
SELECT window_start, PERCENTILE(amount, 0.25), JSON_OBJECTAGG(kind VALUE amount), BIT_AND(amount)
FROM TABLE(TUMBLE(TABLE parts, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;

INSERT INTO lately
SELECT
  amount,
  PERCENTILE(amount, 0.5) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
  BIT_OR(amount) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW),
  BIT_XOR(amount) OVER (ORDER BY ts)
FROM orders;
