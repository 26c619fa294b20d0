-- Windows that overlap, and sessions, take their rows in the order in which they arrived, whatever their times.

CREATE TABLE seen (
  who STRING,
  what STRING,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'seen', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE hops (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  who STRING,
  first_one STRING,
  last_one STRING,
  every_one STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'hops',
  'format' = 'json'
);

CREATE TABLE growing (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  who STRING,
  last_one STRING,
  every_one ARRAY<STRING>
) WITH (
  'connector' = 'kafka', 'topic' = 'growing',
  'format' = 'json'
);

CREATE TABLE sessions (
  who STRING,
  first_one STRING,
  last_one STRING,
  every_one STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'sessions',
  'format' = 'json'
);

INSERT INTO hops
SELECT window_start, window_end, who, FIRST_VALUE(what), LAST_VALUE(what), LISTAGG(what)
FROM TABLE(HOP(TABLE seen, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND))
GROUP BY window_start, window_end, who;

INSERT INTO growing
SELECT window_start, window_end, who, LAST_VALUE(what), ARRAY_AGG(what)
FROM TABLE(CUMULATE(TABLE seen, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND))
GROUP BY window_start, window_end, who;

INSERT INTO sessions
SELECT who, FIRST_VALUE(what), LAST_VALUE(what), LISTAGG(what)
FROM TABLE(SESSION(TABLE seen PARTITION BY who, DESCRIPTOR(ts), INTERVAL '4' SECOND))
GROUP BY window_start, window_end, who;
