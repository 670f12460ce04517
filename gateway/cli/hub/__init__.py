"""`hearth pull`: model downloads from a Hugging Face hub."""
