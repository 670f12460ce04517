"""Question sets run through the ask flow, scored and compared. Imports `ask` and below."""
