"""From the syntax of a query to the nodes of a plan: names looked up, types worked out, each construct one file."""
