-- The three highest bids of each auction, numbered; of bids of one price the first to come is the higher.

CREATE TABLE bid (
  auction BIGINT,
  bidder STRING,
  price BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'bid', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE highest (
  auction BIGINT,
  place BIGINT,
  bidder STRING,
  price BIGINT,
  PRIMARY KEY (auction, place) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'highest',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE leaders (
  auction BIGINT,
  bidder STRING,
  price BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'leaders',
  'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO highest
SELECT auction, place, bidder, price
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place
  FROM bid
)
WHERE place <= 3;

INSERT INTO leaders
SELECT auction, bidder, price
FROM bid
QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) < 3;
END;
