"""Answers side by side: what Flink SQL says about a query or an expression, and what Tailrace says."""
