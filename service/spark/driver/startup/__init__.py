"""The first module of the Python processes that Spark starts; see `sitecustomize`."""
