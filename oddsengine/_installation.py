"""What is installed, found without importing numpy or numba: the version.

Uses the standard library only, and nothing of the package: `oddsengine_cli` loads this file alone.
"""

__version__ = "0.1.0"
