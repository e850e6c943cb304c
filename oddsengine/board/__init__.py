"""The live board: prices in columns that are updated in place.

Reading order: quotes (parsing and validation), codes, raw labels and events (texts to codes), names (all of these),
rows (one slot per price), partitions (rows that are judged and searched together), changed_markets (which of these a
step has to search), ageing and event_status (what time changes), facts (a copy of rows at one moment), undo, state (the
board itself), open (opportunities).
"""
