#!/usr/bin/env python3
"""Django's command line for this project: `python manage.py help`."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    from django.core.management import execute_from_command_line

    from controlplane import database

    if sys.argv[1:2] in (["collect"], ["schedule"]):
        database.be("worker")

    execute_from_command_line(sys.argv)
