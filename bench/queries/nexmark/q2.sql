-- The bids on a few auctions.
CREATE TABLE answers (
  auction BIGINT,
  price BIGINT
) WITH ('connector' = 'blackhole');

INSERT INTO answers
SELECT auction, price
FROM bid
WHERE MOD(auction, 123) = 0;
