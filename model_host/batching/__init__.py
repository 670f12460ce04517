"""Plan the running requests and the next batch: scheduler, slots, drafts, step sizes. Imports no llama_cpp."""
