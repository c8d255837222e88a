"""Training a summarizer by a reward."""
