-- Records that cannot be decoded and rows that cannot be computed go their own way; the others go on.

CREATE TABLE orders (
  id BIGINT NOT NULL,
  amount BIGINT,
  parts BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE shares (
  id BIGINT,
  share BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'shares',
  'format' = 'json'
);

INSERT INTO shares
SELECT id, amount / parts FROM orders;
