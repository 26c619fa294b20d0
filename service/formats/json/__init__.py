"""JSON: from the bytes of records to columns, and from columns to text."""
