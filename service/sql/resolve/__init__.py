"""Resolution of a query's syntax to plan nodes: names resolved, types derived, one file for each construct.

A mistake is noted with its place (`ResolveContext.mistakes`), and resolution goes on as far as it can. What cannot be
resolved then raises QueryRejected, in any module of this room: there is no plan of the query.
"""
