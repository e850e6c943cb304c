"""Run the commands in the README and insert their output: `python scripts/refresh_readme.py`.

The times in the summaries stay as they are; `tests/test_readme.py` compares everything else.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

from oddsengine.commands import output, price, scan
from oddsengine.commands.cli import main

README = Path(__file__).parent.parent / "README.md"
WIDTH = 100  # of the terminal that the examples show
_TIME = re.compile(r"\d+\.\d\d s$", re.MULTILINE)


def _fresh(block: re.Match[str]) -> str:
    """Return a command's block with its current output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(shlex.split(block["command"])[1:])
    time = _TIME.search(block["shown"])
    text = _TIME.sub(time[0], printed.getvalue()) if time else printed.getvalue()
    return f"```console\n$ {block['command']}\n{text}```"


def refresh() -> None:
    """Rewrite the README."""
    for module in (scan, price, output):
        vars(module)["terminal"] = lambda: WIDTH
    text = README.read_text(encoding="utf-8")
    pattern = r"^```console\n\$ (?P<command>oddsengine [^\n]*)\n(?P<shown>.*?)^```$"
    README.write_text(re.sub(pattern, _fresh, text, flags=re.MULTILINE | re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    refresh()
