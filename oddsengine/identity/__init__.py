"""What the wording of a price means, which prices belong to one market, and their layout in a board."""
