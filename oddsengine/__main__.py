"""`python -m oddsengine` is the command line."""

import sys

from oddsengine_cli import main

if __name__ == "__main__":
    sys.exit(main())
