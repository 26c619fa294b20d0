-- Query 13 of Nexmark: bids beside a small table that does not change, here a compacted topic in place of a file.

CREATE TABLE bid (
  auction BIGINT,
  bidder BIGINT,
  price BIGINT,
  `dateTime` TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'bid', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE side_input (
  key BIGINT,
  `value` STRING,
  PRIMARY KEY (key) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'side_input',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE nexmark_q13 (
  auction BIGINT,
  bidder BIGINT,
  price BIGINT,
  `dateTime` TIMESTAMP(3),
  `value` STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'nexmark_q13',
  'format' = 'json'
);

INSERT INTO nexmark_q13
SELECT
  B.auction,
  B.bidder,
  B.price,
  B.`dateTime`,
  S.`value`
FROM (SELECT *, PROCTIME() AS p_time, MOD(auction, 3) AS aKey FROM bid) B
JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S
ON B.aKey = S.key;
