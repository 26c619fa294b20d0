-- Where each truck was seen last, by the time of the sighting and not of its arrival; and by arrival.

CREATE TABLE seen (
  truck STRING,
  place STRING,
  ts TIMESTAMP(3),
  arrival AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'seen', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE last_seen (
  truck STRING,
  place STRING,
  ts TIMESTAMP(3),
  PRIMARY KEY (truck) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'last_seen',
  'format' = 'debezium-json'
);

CREATE TABLE last_heard WITH ('topic' = 'last_heard') LIKE last_seen;

EXECUTE STATEMENT SET
BEGIN
INSERT INTO last_seen
SELECT truck, place, ts
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY truck ORDER BY ts DESC) AS rn FROM seen)
WHERE rn = 1;

INSERT INTO last_heard
SELECT truck, place, ts
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY truck ORDER BY arrival DESC) AS rn FROM seen)
WHERE rn = 1;
END;
