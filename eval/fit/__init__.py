"""A fitted model that computes metrics."""
