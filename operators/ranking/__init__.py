"""Ranking: the first rows of each group in some order."""
