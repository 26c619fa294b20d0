-- What each account paid in each ten seconds, every second.
CREATE TABLE payments (
  id BIGINT,
  account BIGINT,
  amount DOUBLE,
  ms BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '${PAYMENTS}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'properties.group.id' = '${GROUP}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE results (
  account BIGINT,
  n BIGINT,
  total DOUBLE,
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3)
) WITH (
  'connector' = 'kafka',
  'topic' = '${OUTPUT}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '${GROUP}',
  'properties.transaction.timeout.ms' = '600000',
  'format' = 'json'
);

INSERT INTO results
SELECT account, COUNT(*) AS n, SUM(amount) AS total, window_start, window_end
FROM TABLE(HOP(TABLE payments, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '10' SECOND))
GROUP BY account, window_start, window_end;
