-- What q13 joins bids with: a row for each remainder of an auction's id.
CREATE TABLE side_input (
  key BIGINT,
  `value` VARCHAR
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:sqlite:${DATABASE}',
  'table-name' = 'side_input'
);
