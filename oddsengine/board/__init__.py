"""The live board: prices in columns that are updated in place.

Reading order: quotes (parsing and validation), names (texts to codes), rows (one slot per price), units (rows that are
judged and searched together), changes (which of these a step has to search), facts (a copy of rows at one moment),
state (the board itself).
"""
