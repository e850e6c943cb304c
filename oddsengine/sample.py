"""The board that ships with the package: where it lies.

About two thousand prices of twelve books, made by `scripts/make_sample_board.py`: true probabilities, margins and
noise from a seed, a few honest opportunities, and every hazard that the guards exist for. The column `planted` says
of each row what it was made for; empty rows are plain prices.

Examples
--------
>>> SAMPLE_BOARD.name
'sample_board.csv'
"""

from pathlib import Path

SAMPLE_BOARD = Path(__file__).parent / "data" / "sample_board.csv"
