"""Resolution of a query's syntax to plan nodes: names resolved, types derived, one file for each construct."""
