"""Starting, watching and restarting queries."""
