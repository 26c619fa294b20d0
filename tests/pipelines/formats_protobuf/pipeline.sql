-- Clicks as messages of Protocol Buffers, counted by page into messages of a schema registry. Test cases write these
-- formats as JSON.

CREATE TABLE clicks (
  page STRING,
  device ROW<name STRING, tags ARRAY<STRING>>,
  at TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset', 'format' = 'protobuf',
  'protobuf.message-class-name' = 'com.example.Web$Click',
  'protobuf.schema' = 'syntax = "proto3";
    package web;
    import "google/protobuf/timestamp.proto";
    message Device { string name = 1; repeated string tags = 2; }
    message Click { optional string page = 1; Device device = 2; google.protobuf.Timestamp at = 3; }'
);

CREATE TABLE pages (
  page STRING,
  clicks BIGINT,
  last_at TIMESTAMP(3),
  PRIMARY KEY (page) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'pages',
  'key.format' = 'protobuf-confluent', 'key.protobuf-confluent.url' = 'http://registry:8081',
  'value.format' = 'protobuf-confluent', 'value.protobuf-confluent.url' = 'http://registry:8081'
);

INSERT INTO pages SELECT page, COUNT(*), MAX(at) FROM clicks WHERE device.name <> 'bot' GROUP BY page;
