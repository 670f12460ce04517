"""llama.cpp: loading, decoding, sampling, threads. With `embedding/engine.py` the only code that imports it."""
