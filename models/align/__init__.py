"""Comparing a summary with its document piece by piece: sentence vectors, word vectors, named monotone features."""
