"""Requests of chats that need no model: reminders, alarms, timers, and the list of tasks.

Imports `planning`, `memory` and `store`.
"""
