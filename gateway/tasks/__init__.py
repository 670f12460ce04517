"""Task values: objectives, tasks, checklists. Imports `store` and `base`."""
