"""The status page: what is kept for it while the service runs, the document for scripts, and the HTML made of it."""
