"""Outcomes become scores and verdicts: pure."""
