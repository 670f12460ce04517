"""What runs and what goes into the next batch: scheduler, slots, drafts, step sizes. Imports no llama_cpp."""
