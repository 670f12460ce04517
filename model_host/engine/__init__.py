"""llama.cpp: loading, decoding, sampling, threads. Besides `embedding/engine.py` the only code that imports it."""
