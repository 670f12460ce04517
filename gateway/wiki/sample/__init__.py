"""The pages of the sample wiki, which gateway/wiki/dumps/sample.py loads. Holds no code and imports nothing."""
