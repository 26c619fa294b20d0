-- Orders of an event stream and users of a database, both in Avro of a schema registry, counted by city as Debezium's
-- changes in Avro. Test cases write these formats as JSON.

CREATE TABLE orders (
  user_id BIGINT,
  amount DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081'
);

CREATE TABLE users (
  id BIGINT,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users',
  'key.format' = 'avro-confluent', 'key.avro-confluent.schema-registry.url' = 'http://registry:8081',
  'value.format' = 'avro-confluent', 'value.avro-confluent.schema-registry.url' = 'http://registry:8081'
);

CREATE TABLE spent (
  city STRING,
  amount DECIMAL(38, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'spent', 'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://registry:8081',
  'debezium-avro-confluent.tailrace.update' = 'd-c'
);

INSERT INTO spent
SELECT city, SUM(amount) FROM orders JOIN users ON user_id = id GROUP BY city;
