"""From pairs to columns of scores: what a scorer is, and what is done with what it says."""
