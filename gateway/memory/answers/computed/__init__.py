"""What code computes for a message, with any model: sums, conversions, days and the clock.

Imports :mod:`gateway.memory.learning`, whose words it shares.
"""
