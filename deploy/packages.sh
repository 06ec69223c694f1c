#!/bin/sh
# Installs the Debian packages named as arguments that are missing; says what it does and never starts a service.
set -eu

missing=""
for package in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ]; then continue; fi
    # A tool that came another way (built by hand, pyenv) is as good as the package.
    case "$package" in
    haproxy | redis-server | chromium) command -v "$package" >/dev/null 2>&1 && continue ;;
    chromium-driver) command -v chromedriver >/dev/null 2>&1 && continue ;;
    postgresql) ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && continue ;;
    python3-venv) python3 -c 'import ensurepip, venv' >/dev/null 2>&1 && continue ;;
    esac
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "Please install these with your system's own tool:$missing" >&2
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
