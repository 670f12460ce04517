"""`hearth log`, and the replay of a logged request."""
