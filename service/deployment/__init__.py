"""From a pipeline and the settings to what runs: clusters, logins, writers, offsets."""
