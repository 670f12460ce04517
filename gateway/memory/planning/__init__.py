"""Plan what to compact and when: pure functions over messages, summaries and a policy.

Imports rows of `store`, and `config`.
"""
