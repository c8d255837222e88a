"""Fitting: the loop, its losses, checkpoints and log; the parts of ``align``."""
