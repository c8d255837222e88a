"""Files: records read and written, files that appear whole, the store of pairs, the folder of a run."""
