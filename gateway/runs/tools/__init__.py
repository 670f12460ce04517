"""The tools of runs, by what they work on."""
