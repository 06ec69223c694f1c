"""A worker of stacks as a process of its own, so that it can be killed: works on whatever the sweep finds."""

from __future__ import annotations

import os
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
LOOK_S = 0.1


def main() -> None:
    """Until somebody ends it."""
    django.setup()
    from apps.stacks import services

    while True:
        for stack_id in services.stacks_to_sweep():
            services.reconcile_stack(stack_id=stack_id)
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
