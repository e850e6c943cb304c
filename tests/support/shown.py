"""What a program printed, compared with what a document shows of it."""

import re

_TIMES = re.compile(r"\d+\.\d\d s\b")


def assert_shown(shown: str, came: str, where: str) -> None:
    """Compare an output with what is shown of it, times apart; `...` stands for anything."""
    wanted = _TIMES.sub("0.00 s", shown).strip("\n")
    pattern = ".*".join(re.escape(part) for part in wanted.split("..."))
    came = "\n".join(line.rstrip() for line in _TIMES.sub("0.00 s", came).strip("\n").splitlines())
    assert re.fullmatch(pattern, came, re.DOTALL), f"{where}\n--- shown\n{wanted}\n--- came\n{came}"
