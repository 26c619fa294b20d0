"""The WITH options of tables: their names, their values, and what they mean for a connector."""
