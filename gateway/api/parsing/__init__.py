"""Request bodies: fields, faults in JSON, neutral values, pages of lists. Shared by all dialects."""
