"""The live board: prices in columns that change in place.

Reading order: quotes (the door), names (texts to codes), rows (one slot a price), units (what is looked at together),
state (the board itself).
"""
