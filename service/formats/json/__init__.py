"""JSON: from the bytes of records to columns, and from columns to text.

`part` is asked for the columns of a key or value, `document` reads them out of a block of texts, in up to three steps:

1. `parse` takes the wanted fields out of all records in one DuckDB statement, in one of five modes, from the fastest
   to one that takes anything. Flat values are taken as text or as numbers, and Arrow casts the column (`fast`); others
   by DuckDB's JSON casts (`columns`). Where fields are missing, the keys of each record are counted (`keys`), and those
   from which as many values came are believed (`counted`).
2. Each mode marks *suspect* rows, which it may have read in another way than the rules say; `repeats` marks those with
   a name that stands in them twice, `escaped_keys` those with one that is written with escapes, `lossy_numbers` those
   with a number that DuckDB alters, `malformed` those that are no JSON.
3. `reference` reads the suspect rows again, one by one: it is the rules, written in Python.

So what is read follows from `reference` alone, and the mode is only how fast. `text` writes; `registered` is JSON
behind the id of a schema.
"""
