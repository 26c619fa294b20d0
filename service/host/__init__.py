"""The machine that the process runs on: cores, memory, files and locks."""
