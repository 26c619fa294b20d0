"""The plan: typed nodes, the passes over them, and the program of stages that both runners execute."""
