"""What Python processes that Spark starts read first; see `sitecustomize`."""
