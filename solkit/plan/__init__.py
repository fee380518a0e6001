"""Shapes, cards and declarations become jobs with bounds: pure, no device needed."""
