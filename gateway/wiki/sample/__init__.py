"""The sample wiki: pages written for this project, and their loader."""
