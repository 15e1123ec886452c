"""NumPy reference implementation of the formulas of dyad, for tests. It uses dense arrays and loops over rows.

Each function states the equation that it computes. The package does not import dyad: tests compare its results with the
model files and the output of the command line.
"""
