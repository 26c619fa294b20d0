"""The reports of a run: health, metrics, log and status page."""
