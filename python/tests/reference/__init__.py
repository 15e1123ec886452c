"""NumPy implementation of dyad's formulas, for tests: dense arrays, loops over rows, no shortcuts.

Each function states the equation that it computes. Nothing here imports dyad: tests compare these results with what the
command line writes to model files and prints.
"""
