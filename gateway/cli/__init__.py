"""The `hearth` command: one file or folder per subcommand. Imports any unit of the gateway."""
