"""What a node keeps of the past: closing lines, price movements, the tape, the archive."""
