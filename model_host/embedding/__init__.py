"""The embedding host: its queue, its loop, its engine."""
