"""Pretrained transformers models, and language models."""
