"""Facts and tasks read from conversations, and facts recalled for a prompt. Imports what :mod:`gateway.memory` may."""
