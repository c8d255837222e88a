"""Ready-made configurations: one YAML file each, installed with the package and found by name (``negsample.settings``)."""
