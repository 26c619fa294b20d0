"""Tables of databases that lookup joins ask."""
