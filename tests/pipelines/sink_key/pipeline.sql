-- The sink's key is not the query's: changes are exchanged by it, a delete and an insert of a key become one update, and
-- of two rows of one key the later shows.

CREATE TABLE seats (
  seat BIGINT,
  holder STRING,
  PRIMARY KEY (seat) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'seats', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE holders (
  holder STRING,
  seat BIGINT,
  PRIMARY KEY (holder) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'holders',
  'format' = 'debezium-json'
);

INSERT INTO holders
SELECT holder, seat FROM seats;
