"""Scores become words, pictures and files."""
