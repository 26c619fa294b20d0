"""Nexmark: the auction site's events, generated from the published rules of the benchmark."""
