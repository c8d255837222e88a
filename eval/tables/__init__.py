"""The tables and figures of the papers on metrics: declared in ``tables.yaml``, measured on judgments, written beside the
printed figures.
"""
