"""The service and its page: what arrives together is computed together, and nothing grows without bounds."""
