"""Tables of conversations: messages, summaries, facts, tasks, jobs, and their transfer. Imports `store`."""
