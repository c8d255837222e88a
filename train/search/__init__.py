"""``negsample tune``: a search on Optuna."""
