"""The status page: the data recorded for it, the document for scripts, and the HTML made of it."""
