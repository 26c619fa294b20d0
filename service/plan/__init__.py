"""The plan: typed nodes, the passes over them, and the program of levels that both runners execute."""
