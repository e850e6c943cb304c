"""How long a text of a request may be, and a list of words."""

MOST_TEXT = 200  # characters of one value
MOST_WORDS = 500
_WORD = f"[^,\\x00]{{0,{MOST_TEXT}}}"
WORDS_PATTERN = f"^{_WORD}(,{_WORD}){{0,{MOST_WORDS - 1}}}$"
