"""The live board: an engine, its views, its updates and its followers."""
