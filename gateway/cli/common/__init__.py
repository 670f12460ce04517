"""What several subcommands share: options, the HTTP client, exit statuses, terminal text."""
