"""Pytest adds the folder of this file, with the modules of the comparison, to the module path."""
