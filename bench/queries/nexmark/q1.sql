-- Prices in another currency.
CREATE TABLE answers (
  auction BIGINT,
  bidder BIGINT,
  price DECIMAL(23, 3),
  `dateTime` TIMESTAMP(3),
  extra VARCHAR
) WITH ('connector' = 'blackhole');

INSERT INTO answers
SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra
FROM bid;
