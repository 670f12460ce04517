"""Who runs and what goes into the next batch: scheduler, slots, drafts, step sizes. No llama_cpp."""
