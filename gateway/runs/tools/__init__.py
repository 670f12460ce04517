"""The tools of runs, by what they work on. Imports `planning`, `ask`, `code`, `memory` and `wiki`."""
