"""The kinds of negatives: each is one function here, and one line of ``NEGATIVES`` in ``negsample.negatives``."""
