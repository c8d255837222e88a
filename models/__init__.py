"""Networks and encoders: features in, scores out."""
