"""The child process that owns the model: llama.cpp behind one JSON object per line on stdin and stdout."""
