"""HTTP endpoints, one folder per dialect or concern. Imports the flows (`ask`, `memory`, `wiki`) and lower units."""
