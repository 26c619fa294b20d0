"""The deployment of a pipeline with its settings: clusters, logins, writers, offsets."""
