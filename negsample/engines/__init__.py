"""Scoring on engines that people run anyway."""
