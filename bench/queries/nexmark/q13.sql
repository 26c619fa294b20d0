-- Bids with what a table of a database says of their auctions.
CREATE VIEW timed_bid AS SELECT *, PROCTIME() AS p_time FROM bid;

CREATE TABLE answers (
  auction BIGINT,
  bidder BIGINT,
  price BIGINT,
  `dateTime` TIMESTAMP(3),
  `value` VARCHAR
) WITH ('connector' = 'blackhole');

INSERT INTO answers
SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
FROM timed_bid AS B
JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S ON MOD(B.auction, 10000) = S.key;
