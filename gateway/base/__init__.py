"""Values and helpers that every unit may use: errors, redaction, asyncio helpers. Imports nothing of hearth."""
