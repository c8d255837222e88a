"""Agreement of scores with people, and of systems with each other: correlation, levels, significance, comparison."""
