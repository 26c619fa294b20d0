"""Database tables that lookup joins read."""
