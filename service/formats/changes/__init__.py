"""The forms that changes have on the wire: debezium, changelog, upsert."""
