"""What endpoints read of the board: views, games, futures, splits."""
