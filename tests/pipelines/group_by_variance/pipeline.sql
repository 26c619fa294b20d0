-- Variances of values that lie close together, far from zero; and sums that are finite again when Infinity is retracted.

CREATE TABLE readings (
  id BIGINT,
  sensor STRING,
  v DOUBLE,
  ms BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'readings', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE spreads (
  sensor STRING,
  variance DOUBLE,
  deviation DOUBLE,
  apart BIGINT,
  total DOUBLE,
  average DOUBLE,
  PRIMARY KEY (sensor) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'spreads',
  'format' = 'debezium-json'
);

INSERT INTO spreads
SELECT sensor, VAR_POP(v), STDDEV_SAMP(v), VAR_SAMP(ms), SUM(v / 2), AVG(v / 2)
FROM readings
GROUP BY sensor;
