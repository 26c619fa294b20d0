"""From the syntax of a query to the nodes of a plan: names resolved, types derived, one file for each construct."""
