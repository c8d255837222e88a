"""Metrics of a summary against its document or references, a file a family; their names stand in ``scoring/scorer.py``."""
