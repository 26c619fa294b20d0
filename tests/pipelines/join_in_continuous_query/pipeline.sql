-- Two streams of numbers: whichever side a number comes on first, the pair is there as soon as it has come on both.

CREATE TABLE A (id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'a', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE B (id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'b', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE result (id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'result', 'format' = 'json'
);

INSERT INTO result
SELECT A.id FROM A JOIN B ON A.id = B.id;
