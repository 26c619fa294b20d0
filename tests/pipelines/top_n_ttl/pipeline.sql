-- The best offer of each shop, forgotten when the shop has been silent for ten seconds.

CREATE TABLE offer (
  shop STRING,
  item STRING,
  price INT
) WITH (
  'connector' = 'kafka', 'topic' = 'offer', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE best (
  shop STRING,
  item STRING,
  price INT
) WITH (
  'connector' = 'kafka', 'topic' = 'best',
  'format' = 'changelog-json'
);

INSERT INTO best
SELECT /*+ STATE_TTL('offer' = '10 s') */ shop, item, price FROM offer
QUALIFY ROW_NUMBER() OVER (PARTITION BY shop ORDER BY price) = 1;
