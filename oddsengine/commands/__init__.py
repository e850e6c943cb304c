"""Commands of the command line, one module per kind of input, and their output."""
