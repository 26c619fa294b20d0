-- What each account paid so far, corrected with every payment.
CREATE TABLE results (
  account BIGINT,
  n BIGINT,
  total DOUBLE
) WITH (
  'connector' = 'kafka',
  'topic' = '${OUTPUT}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '${GROUP}',
  'properties.transaction.timeout.ms' = '600000',
  'format' = 'debezium-json'
);

INSERT INTO results
SELECT account, COUNT(*) AS n, SUM(amount) AS total
FROM payments
GROUP BY account;
