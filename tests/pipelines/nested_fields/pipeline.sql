-- Of nested records only the fields that are read are decoded: what stands in the others, right or wrong, has no say.

CREATE TABLE events (
  kind INT,
  person ROW<id BIGINT, name STRING, home ROW<city STRING, street STRING>>,
  bid ROW<auction BIGINT, price DECIMAL(10, 2), at TIMESTAMP(3), note STRING>,
  ts AS bid.at,
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'events', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE bids (
  auction BIGINT,
  price DECIMAL(10, 2),
  ts TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'bids', 'format' = 'json');

CREATE TABLE cities (
  city STRING,
  persons BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = 'cities', 'format' = 'debezium-json');

EXECUTE STATEMENT SET
BEGIN

  INSERT INTO bids
  SELECT bid.auction, bid.price, ts FROM events WHERE kind = 2;

  INSERT INTO cities
  SELECT person.home.city, COUNT(*) FROM events WHERE kind = 0 AND person.home.city IS NOT NULL GROUP BY person.home.city;

END;
