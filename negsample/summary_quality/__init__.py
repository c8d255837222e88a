"""The folder that ``evaluate.load`` takes: ``evaluate.load(negsample.summary_quality.__path__[0])``."""
