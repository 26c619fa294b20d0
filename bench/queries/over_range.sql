-- Each payment with the sum of what its account paid in the ten seconds before it.
CREATE TABLE results (
  id BIGINT,
  account BIGINT,
  amount DOUBLE,
  n BIGINT,
  recent DOUBLE
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
SELECT id, account, amount, COUNT(*) OVER last_seconds AS n, SUM(amount) OVER last_seconds AS recent
FROM payments
WINDOW last_seconds AS (
  PARTITION BY account ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW
);
