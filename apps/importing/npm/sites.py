"""Hosts, redirections and streams of Nginx Proxy Manager as the files of nginx that it writes for them.

The names of the files and what they say are those of its own templates (version 2.12). What these files ask that no
route can be asked is left out of them, and said at the row (rows.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from apps.importing.npm.database import Database, Row, parsed

MAIN = "/etc/nginx/nginx.conf"
PROXY, FORCE_SSL = (f"conf.d/include/{name}.conf" for name in ("proxy", "force-ssl"))
ASSETS = r"^.*\.(css|js|jpe?g|gif|png|webp|woff|woff2|eot|ttf|svg|ico|css\.map|js\.map)$"
CACHED = ("proxy_cache public-cache;", "proxy_connect_timeout 5s;", "proxy_read_timeout 45s;")
_OWN_DEFAULT = re.compile(r"^(?:.*;)?\s*?location\s*?/\s*?{", re.IGNORECASE | re.MULTILINE)
_PLAIN = re.compile(r"""[^\s;{}"'\\#]+""")
_FIXED = {
    MAIN: """
        http {
            keepalive_timeout 90s;
            proxy_connect_timeout 90s;
            proxy_send_timeout 90s;
            proxy_read_timeout 90s;
            gzip on;
            client_max_body_size 2000m;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            include /data/nginx/*_host/*.conf;
        }
        stream {
            include /data/nginx/stream/*.conf;
        }
        """,
    PROXY: """
        add_header X-Served-By $host;
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Real-IP $remote_addr;
        """,
    FORCE_SSL: 'if ($scheme = "http") { return 301 https://$host$request_uri; }',
}


def as_nginx(database: Database) -> dict[str, str]:
    """Path → text; the file MAIN includes the others."""
    files = dict(_FIXED) | {f"/data/nginx/default_host/{name}.conf": text for name, text in _defaults(database)}
    writers = {"proxy_host": _proxy_host, "redirection_host": _redirection, "dead_host": _dead, "stream": _stream}
    for table, write in writers.items():
        for row in filter(is_used, database.rows(table)):
            files[f"/data/nginx/{table}/{row['id']}.conf"] = "\n".join(write(database, row))
    for row in database.rows("access_list"):
        users = database.of_list("access_list_auth", row["id"])
        lines = [f"{each['username']}:{{PLAIN}}{each['password']}\n" for each in users]
        files[f"/data/access/{row['id']}"] = "".join(lines)
    return files


def is_used(row: Mapping[str, object]) -> bool:
    """Whether Nginx Proxy Manager writes a file for the row."""
    return not row.get("is_deleted") and bool(row.get("enabled", 1))


def domains(row: Row) -> list[str]:
    """The names of a host."""
    names = parsed(row.get("domain_names"))
    return [str(name) for name in names] if isinstance(names, list) else []


def _defaults(database: Database) -> Iterator[tuple[str, str]]:
    """What unknown hosts get: by the setting at port 80, nothing at 443."""
    setting = database.row("setting", "default-site") or {}
    chosen, meta = str(setting.get("value") or "congratulations"), parsed(setting.get("meta")) or {}
    answers = {"444": "return 444;", "redirect": f"return 301 {_word(meta.get('redirect', ''))};"}
    location = f"location / {{ {answers.get(chosen, 'return 404;')} }}"
    yield "site", f"server {{\n listen 80 default_server;\n {location}\n}}"
    yield "tls", "server {\n listen 443 ssl default_server;\n ssl_reject_handshake on;\n return 444;\n}"


def _proxy_host(database: Database, row: Row) -> Iterator[str]:
    yield "server {"
    yield from _listening(row)
    yield from _secured(database, row)
    server = f"{row.get('forward_host') or row.get('forward_ip')}:{row['forward_port']}"
    to = _word(f"{row.get('forward_scheme') or 'http'}://{server}")
    passing = (f"include {PROXY};", f"proxy_pass {to};", "}")
    if row.get("caching_enabled"):
        yield from (f"location ~* {ASSETS} {{", *CACHED, *passing)
    yield from _given(row)
    locations = [each for each in parsed(row.get("locations")) or () if isinstance(each, dict)]
    for each in locations:
        yield from _location(database, row, each)
    if not _has_own_default(row) and not any(each.get("path") == "/" for each in locations):
        yield "location / {"
        yield from _access(database, row)
        yield from _hsts(row)
        yield from passing
    yield "}"


def _location(database: Database, row: Row, location: Row) -> Iterator[str]:
    host, slash, path = str(location.get("forward_host", "")).partition("/")
    to = f"{location.get('forward_scheme', 'http')}://{host}:{location.get('forward_port', 80)}{slash}{path}"
    # A path may have a sign before it, such as `= /login` or `~ ^/a`.
    yield f"location {' '.join(map(_word, str(location.get('path', '/')).split()))} {{"
    yield from _given(location)
    yield "proxy_set_header Host $host;"
    yield "proxy_set_header X-Forwarded-Proto $scheme;"
    yield "proxy_set_header X-Forwarded-For $remote_addr;"
    yield "proxy_set_header X-Real-IP $remote_addr;"
    yield f"proxy_pass {_word(to)};"
    yield from _access(database, row)
    yield from _forced(row)
    yield from _hsts(row)
    yield "}"


def _redirection(database: Database, row: Row) -> Iterator[str]:
    scheme = row.get("forward_scheme")
    to = f"{scheme if scheme in ('http', 'https') else '$scheme'}://{row['forward_domain_name']}"
    to += "$request_uri" if row.get("preserve_path") else ""
    yield from _answering(database, row, f"return {_word(row.get('forward_http_code') or 301)} {_word(to)};")


def _dead(database: Database, row: Row) -> Iterator[str]:
    yield from _answering(database, row, "return 404;")


def _answering(database: Database, row: Row, answer: str) -> Iterator[str]:
    yield "server {"
    yield from _listening(row)
    yield from _secured(database, row)
    yield from _given(row)
    if not _has_own_default(row):
        yield "location / {"
        yield from _hsts(row)
        yield answer
        yield "}"
    yield "}"


def _stream(database: Database, row: Row) -> Iterator[str]:
    to = f"proxy_pass {_word(row.get('forwarding_host') or row.get('forward_ip'))}:{_word(row['forwarding_port'])};"
    for forwards, end in (("tcp_forwarding", ""), ("udp_forwarding", " udp")):
        if row.get(forwards):
            secure = " ssl" if row.get("certificate_id") and not end else ""
            yield f"server {{\nlisten {_word(row['incoming_port'])}{secure}{end};"
            yield from _certificate(database, row) if secure else ()
            yield to
            yield "}"


def _listening(row: Row) -> Iterator[str]:
    yield "listen 80;"
    yield "listen [::]:80;"
    if row.get("certificate_id"):
        yield "listen 443 ssl;"
        yield "listen [::]:443 ssl;"
        yield f"http2 {'on' if row.get('http2_support') else 'off'};"
    yield f"server_name {' '.join(map(_word, domains(row)))};"


def _secured(database: Database, row: Row) -> Iterator[str]:
    yield from _certificate(database, row)
    yield from _hsts(row)
    yield from _forced(row)


def _certificate(database: Database, row: Row) -> Iterator[str]:
    number = row.get("certificate_id")
    if not number:
        return
    own = (database.row("certificate", number) or {}).get("provider") != "letsencrypt"
    folder = f"{'/data/custom_ssl' if own else '/etc/letsencrypt/live'}/npm-{number}"
    if not own:
        yield "ssl_protocols TLSv1.2 TLSv1.3;"
    yield f"ssl_certificate {folder}/fullchain.pem;"
    yield f"ssl_certificate_key {folder}/privkey.pem;"


def _forced(row: Row) -> Iterator[str]:
    if row.get("certificate_id") and row.get("ssl_forced"):
        yield f"include {FORCE_SSL};"


def _hsts(row: Row) -> Iterator[str]:
    if row.get("certificate_id") and row.get("ssl_forced") and row.get("hsts_enabled"):
        below = " includeSubDomains;" if row.get("hsts_subdomains") else ""
        yield f'add_header Strict-Transport-Security "max-age=63072000;{below} preload" always;'


def _access(database: Database, row: Row) -> Iterator[str]:
    number = row.get("access_list_id")
    access = database.row("access_list", number) if number else None
    if access is None:
        return
    if database.of_list("access_list_auth", number):
        yield 'auth_basic "Authorization required";'
        yield f"auth_basic_user_file /data/access/{number};"
        if not access.get("pass_auth"):
            yield 'proxy_set_header Authorization "";'
    clients = database.of_list("access_list_client", number)
    for each in clients:
        yield f"{'allow' if each['directive'] == 'allow' else 'deny'} {_word(each['address'])};"
    if clients:
        yield "deny all;"
    yield f"satisfy {'any' if access.get('satisfy_any') else 'all'};"


def _given(row: Row) -> Iterator[str]:
    """Lines of nginx that somebody wrote for the host."""
    if row.get("advanced_config"):
        yield str(row["advanced_config"])


def _has_own_default(row: Row) -> bool:
    return bool(_OWN_DEFAULT.search(str(row.get("advanced_config") or "")))


def _word(value: object) -> str:
    """One word of nginx, whatever it holds."""
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
