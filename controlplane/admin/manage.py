"""`spillway-manage`: manage.py with the settings of the console that is installed on this machine."""

from __future__ import annotations

import os
import sys

from controlplane.admin import environment_file


def main() -> None:
    """Exit code 1 where the settings cannot be read, else that of the command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    try:
        environment_file.load(environment_file.DEFAULT, *environment_file.PACKAGED)
    except environment_file.CannotRead as error:
        sys.exit(f"{error} Run it as root or as the user spillway.")
    from django.core.management import execute_from_command_line

    execute_from_command_line(["spillway-manage", *sys.argv[1:]])


if __name__ == "__main__":
    main()
