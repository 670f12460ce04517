"""IRC itself: the connection, its registration, and lines in and out. Imports pydle, and `config` of the client."""
