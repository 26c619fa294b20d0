-- The same for Flink: SideInputFactory.java reads the file into memory.
CREATE TABLE side_input (
  key BIGINT,
  `value` VARCHAR
) WITH (
  'connector' = 'side-input',
  'path' = '${TEXT}'
);
