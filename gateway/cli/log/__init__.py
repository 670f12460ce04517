"""`hearth log`, and the replay of logged requests."""
