"""Grids of runs: the tables of the papers, transfer between domains."""
