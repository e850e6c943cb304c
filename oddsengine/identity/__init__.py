"""What the raw label of a price means, which prices belong to one market, and their layout in a board."""
