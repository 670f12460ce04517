"""The process: application wiring, socket, connections, signals, service manager. Imports any unit but `cli`."""
