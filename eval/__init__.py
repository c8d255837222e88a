"""Agreement with people: judgments, metrics, statistics, reports."""
