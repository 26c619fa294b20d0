"""Schema registries: schemas of records, by id and by subject."""
