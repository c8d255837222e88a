"""Files: records read and written, files that appear whole, what --resume rests on."""
