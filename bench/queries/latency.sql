-- How often each payment came and when it was sent last: one result a row, so that the delay of every row shows.
CREATE TABLE results (
  id BIGINT,
  n BIGINT,
  sent BIGINT
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
SELECT id, COUNT(*) AS n, MAX(ms) AS sent
FROM payments
GROUP BY id;
