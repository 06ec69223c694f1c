#!/bin/sh
# Prints the Python that the console's virtual environment is made with: the one named as argument, else the system's own
# where it fits, else python3, else the newest in PATH that fits. The system's comes with its updates, and is optimised,
# which one compiled at home rarely is: a fifth faster. The lock is for Python 3.11 to 3.14
# (docs/operate/compatibility.md).
set -eu

SYSTEM_PYTHON="${SYSTEM_PYTHON-/usr/bin/python3}"
FITTING="3.14 3.13 3.12 3.11"

version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

fits() {
    case " $FITTING " in *" ${1:-none} "*) return 0 ;; esac
    return 1
}

refuse() {
    echo "$1 A console needs Python 3.11, 3.12, 3.13 or 3.14." >&2
    echo "Install one beside it (Debian 12: python3.11-venv; Debian 13: python3.13-venv; Ubuntu 24.04: python3.12-venv;" >&2
    echo "RHEL and Rocky 9: python3.12), then say which: make $GOALS PYTHON=python3.12. The agent of a node needs 3.9 or later." >&2
    exit 1
}

GOALS="${MAKE_GOALS:-up}"
if [ -n "${1:-}" ]; then
    found=$(version "$1")
    [ -n "$found" ] || refuse "$1 is no Python that can be started."
    fits "$found" || refuse "$1 is Python $found."
    command -v "$1"
    exit 0
fi
for each in $SYSTEM_PYTHON python3 $(printf 'python%s ' $FITTING); do
    if fits "$(version "$each")"; then
        command -v "$each"
        exit 0
    fi
done
found=$(version python3)
if [ -n "$found" ]; then refuse "python3 is Python $found, and no newer one is in PATH."; fi
refuse "There is no python3 in PATH."
