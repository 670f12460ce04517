"""Lines in and events out: the reader and preparer threads, the writer."""
