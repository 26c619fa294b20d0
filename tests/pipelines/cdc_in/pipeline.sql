-- Changes of a database in debezium-json, filtered: an update that leaves the filter is a delete.

CREATE TABLE accounts (
  id BIGINT,
  owner STRING,
  balance DECIMAL(10, 2),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'accounts', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

CREATE TABLE rich (
  id BIGINT,
  owner STRING,
  balance DECIMAL(10, 2),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'rich',
  'format' = 'debezium-json'
);

INSERT INTO rich
SELECT id, owner, balance FROM accounts WHERE balance >= 100;
