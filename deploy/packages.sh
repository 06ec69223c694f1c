#!/bin/sh
# Installs the Debian packages named as arguments that are missing; says what it does and never starts a service.
set -eu

missing=""
for package in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ]; then continue; fi
    # A tool that came another way (built by hand, pyenv) is as good as the package.
    case "$package" in
    haproxy | nginx | redis-server | chromium) command -v "$package" >/dev/null 2>&1 && continue ;;
    # Tests use chromium where this is not to be had.
    chromium-headless-shell) apt-cache show "$package" >/dev/null 2>&1 || continue ;;
    chromium-driver) command -v chromedriver >/dev/null 2>&1 && continue ;;
    postgresql) ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && continue ;;
    python3-venv) python3 -c 'import ensurepip, venv' >/dev/null 2>&1 && continue ;;
    esac
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0

# What other systems call them; `-` is part of another package there.
named_by_dnf() {
    case "$1" in
    python3-venv) echo - ;; # Python itself has it; a console wants python3.12 on RHEL 9
    redis-server) echo redis ;; # from RHEL 10 and Fedora 41: valkey with valkey-compat-redis
    iproute2) echo iproute ;;
    postgresql) echo postgresql-server ;;
    chromium-driver) echo chromedriver ;;
    bind9) echo bind ;;
    etcd-server) echo etcd ;;
    bird2) echo bird ;;
    pdns-server) echo pdns ;;
    pdns-backend-sqlite3) echo pdns-backend-sqlite ;;
    prometheus-alertmanager) echo alertmanager ;;
    *) echo "$1" ;;
    esac
}

if ! command -v apt-get >/dev/null 2>&1; then
    echo "These are missing, and this script installs with apt only:$missing" >&2
    if command -v dnf >/dev/null 2>&1; then
        names=""
        for package in $missing; do names="$names $(named_by_dnf "$package")"; done
        names=$(printf '%s\n' $names | grep -vx -e - | tr '\n' ' ')
        if [ -n "$names" ]; then
            echo "Run: sudo dnf install $names" >&2
            echo "Where a name is unknown, enable EPEL first. Where redis is unknown, install valkey-compat-redis." >&2
        else
            echo "Choose a Python that has venv and ensurepip: make PYTHON=python3.12 ${MAKE_GOALS:-up}" >&2
        fi
    else
        echo "Install them with your system's own tool, then run this again." >&2
    fi
    echo "docs/operate/compatibility.md lists the systems and where a newer HAProxy comes from." >&2
    exit 1
fi
root=""
[ "$(id -u)" = 0 ] || root="sudo"
echo "Installing with apt:$missing"

# Debian starts a service as soon as its package is there. Ours run on ports of their own, so those are not wanted.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '$root rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
    $root chmod 755 "$policy"
fi
$root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 || {
    $root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # shellcheck disable=SC2086 - a list of words
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
}
