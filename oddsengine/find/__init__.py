"""The four finders: detected candidates to result frames, one module per kind of opportunity."""
