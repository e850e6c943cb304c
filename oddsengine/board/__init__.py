"""The live board: prices in columns that change in place.

Reading order: quotes (the door), names (texts to codes), rows (one slot a price), units (what is looked at together),
changes (what of that a step has to search), facts (rows as they are at one moment), state (the board itself).
"""
