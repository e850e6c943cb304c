"""The command `backup`. The service is imported only when it runs."""

import argparse
import os
import sys
from pathlib import Path

from oddsengine.commands.output import new_file, service_needed


def backup_command(arguments: argparse.Namespace) -> None:
    with service_needed():
        from oddsengine_service.backup import back_up  # noqa: PLC0415  see the module's docstring
        from oddsengine_service.settings import load  # noqa: PLC0415
    settings = load(arguments.config, os.environ)
    if arguments.file == "-":
        if sys.stdout.isatty():
            raise ValueError("- writes the archive to standard output, which is a terminal; redirect it to a file")
        names = back_up(settings, sys.stdout.buffer)
        sys.stdout.flush()
    else:
        with new_file(Path(arguments.file)) as out:
            names = back_up(settings, out)
    pepper = Path(settings.data.folder) / settings.keys.pepper
    print(f"backed up {', '.join(names)}; back up {pepper} elsewhere, keys cannot be used without it", file=sys.stderr)
