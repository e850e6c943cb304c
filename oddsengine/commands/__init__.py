"""What the command line does: one module of commands a kind of input, and how they print."""
