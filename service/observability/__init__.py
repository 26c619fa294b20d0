"""What a run tells of itself: health, metrics, log and status page."""
