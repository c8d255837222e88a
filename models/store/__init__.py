"""What is kept on disk: embeddings, and rows of any length."""
