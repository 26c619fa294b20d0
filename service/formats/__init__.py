"""Formats: records of Kafka to blocks of rows, and blocks to records.

From the bytes of a record to a block of rows:

1. `service.runtime.ingest` has the records of a Kafka partition, and asks the decoder of its table (`registry.decoder`)
   for the columns that the plan reads.
2. A decoder knows what a record is: a row (`row_decoder`), or a change (`changes.decoder`, with the shape of its
   format). It takes key and value apart (`record_parts`), and adds what Kafka keeps beside them (`metadata`).
3. The reader of a part knows its bytes (`registry.reader`): `json.part`, `csv.reader`, `avro.part`, `protobuf.part` or
   `raw`. It gives a column for each field, and notes the positions of values that it cannot read.
4. Back in the decoder, columns and weights become a block, and what cannot be read dead records (`records`).

The other way: `row_encoder` makes rows of changes (`changes.change_pairs`), a part's writer their text or bytes, and
the shape what stands around them.
"""
