"""Tasks that do themselves: a run carries out a task's checklist with tools, and stops at BREAKPOINTs.

Imports `ask`, `code`, `memory`, `wiki` and what is below them. `decide.py` is the pure function that says what comes
next.
"""
