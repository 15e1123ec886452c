"""Pytest adds the folder of this file, with the algorithms, to the module path."""
