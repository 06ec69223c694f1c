"""Directives that no reader takes: settings of the machine, what Spillway does itself, and what has no place."""

from __future__ import annotations

import re

from crossplane.analyzer import DIRECTIVES

from apps.importing.nginx.text.directives import Directive
from apps.importing.verdicts import Ledger, Line, Verdict

PROCESS = "A setting of nginx's processes; nodes have their own."
LOGS = "Requests are logged by every node; see the request log."
MEMORY = "How nginx uses memory, files and sockets; nodes decide it themselves."
TLS = "The TLS preset of the listener says versions and ciphers."
STATISTICS = "Statistics are pages and metrics of Spillway."
FILES = "Nodes serve no files: put a server behind that has them, such as an nginx of its own, and name it as a pool."
PROGRAMS = "Nodes speak HTTP with servers: put an HTTP server before the program, and name it as a pool."
CACHE = "A listener has a cache for all of its paths (cache); this one is not moved."
SCRIPTS = "Nodes run no programs of the configuration; put a server behind that does it."
# The first that fits the whole name counts.
NODE = (
    ((r"user|pid|daemon|master_process|worker_.*|events|use|multi_accept|accept_mutex.*|debug_.*|env|lock_file|"
     r"load_module|pcre_jit|thread_pool|timer_resolution|working_directory|ssl_engine|google_perftools_profiles|"
     r"http|stream|include|types|default_type|types_hash.*"), PROCESS),
    (r"access_log|error_log|log_.*|open_log_file_cache|rewrite_log|uninitialized_variable_warn|session_log.*", LOGS),
    (r"status_zone|status|status_format|stub_status|zone|zone_sync.*|state|api|upstream_conf", STATISTICS),
    ((r"ssl_(?:ciphers|prefer_server_ciphers|ecdh_curve|dhparam|session_.*|buffer_size|stapling.*|protocols|"
     r"handshake_timeout|trusted_certificate|verify_depth|conf_command|reject_handshake)"), TLS),
    ((r"sendfile.*|tcp_.*|aio.*|directio.*|output_buffers|postpone_output|reset_timedout_connection|.*_hash_.*_size|"
     r"client_(?:body|header)_(?:buffer|temp|in).*|large_client_header_buffers|connection_pool_size|"
     r"request_pool_size|lingering_.*|keepalive_disable|keepalive_requests|http2_.*|open_file_cache.*|"
     r"(?:proxy|grpc)_(?:buffer.*|busy_.*|temp_.*|max_temp_.*|headers_hash_.*|send_lowat|socket_keepalive|"
     r"ignore_client_abort|http_version|ssl_session_reuse|ssl_ciphers|ssl_protocols|request_buffering|"
     r"force_ranges)|send_lowat|subrequest_output_buffer_size|chunked_transfer_encoding|msie_.*|read_ahead|"
     r"preread_.*|server_names_hash.*|resolver.*|variables_hash.*|map_hash.*|gzip_(?:buffers|comp_level|disable|"
     r"http_version|min_length|vary|proxied)|keepalive_(?:min_timeout|time)|proxy_cache_path|limit_.*log_level|"
     r"port_in_redirect|server_name_in_redirect|absolute_redirect|server_tokens|etag|if_modified_since|"
     r"max_ranges|ignore_invalid_headers|underscores_in_headers|recursive_error_pages|send_timeout"), MEMORY),
)  # fmt: skip
WHY = (
    ((r"root|alias|index|try_files|autoindex.*|random_index|expires|gzip_static|gunzip.*|disable_symlinks|charset.*|"
     r"source_charset|override_charset|ssi.*|addition_types|add_(?:after|before)_body|image_filter.*|xslt.*|"
     r"xml_.*|flv|f4f.*|mp4.*|hls.*|dav_.*|create_full_put_path|min_delete_depth|empty_gif"), FILES),
    (r"(?:fastcgi|uwsgi|scgi|memcached)_.*", PROGRAMS),
    (r"(?:proxy|grpc)_(?:cache|no_cache|store).*|slice", CACHE),
    (r".*_by_lua.*|lua_.*|js_.*|perl.*|set_by.*|content_by.*", SCRIPTS),
    (r"mail|imap_.*|pop3_.*|smtp_.*|auth_http.*|starttls|xclient|protocol|proxy_pass_error_message",
     "Nodes pass mail on as tcp; write a tcp listener."),
    (r"sub_filter.*", "Bodies are passed on as they are; let the server write the right text."),
    (r"proxy_cookie_.*", "Cookies of servers are passed on as they are; let the server set the right path and domain."),
    (r"proxy_redirect", "Redirects of servers are passed on as they are; let the server name public addresses."),
    (r"mirror.*", "Nodes send no copies of requests; only Google Cloud does (mirror of a route)."),
    (r"limit_rate.*|proxy_(?:download|upload)_rate|proxy_limit_rate",
     "Set bandwidth in a policy, where all nodes run HAProxy 2.7 or later."),
    (r"split_clients", "Give a route several pools with weights instead."),
    (r"geo|geoip.*|keyval.*|userid.*|secure_link.*|valid_referers|ancient_.*|modern_.*",
     "Routes cannot ask this; see what they can ask under Routes."),
    (r"satisfy", "All that is asked must hold: networks, password and limits together."),
    (r"merge_slashes", "Paths are compared as clients write them; // is not made one slash."),
    (r"post_action|auth_request.*|auth_jwt.*", "Ask for tokens in a policy (jwt), or let the server ask."),
    (r"sticky.*", "Session persistence is a setting of the pool (persistence)."),
    (r"health_check.*|match", "Write the health check of the pool (health_check)."),
)  # fmt: skip


# What readers take where a request comes by.
READ = frozenset(
    """
    proxy_pass grpc_pass proxy_set_header grpc_set_header add_header proxy_hide_header grpc_hide_header
    proxy_pass_header grpc_pass_header client_max_body_size proxy_connect_timeout proxy_read_timeout
    proxy_send_timeout grpc_connect_timeout grpc_read_timeout grpc_send_timeout proxy_next_upstream
    proxy_next_upstream_tries proxy_ssl_verify proxy_ssl_name proxy_ssl_server_name proxy_ssl_trusted_certificate
    proxy_intercept_errors error_page limit_req limit_conn limit_req_zone limit_conn_zone allow deny auth_basic
    auth_basic_user_file gzip gzip_types set_real_ip_from real_ip_header real_ip_recursive limit_except
    """.split()  # noqa: SIM905 - as a list it would take a screen
)


def close(ledger: Ledger, directives: dict[tuple[str, int, int], Directive]) -> None:
    """A verdict for every line that is still without one."""
    for line in ledger.open_lines():
        directive = directives.get(line.position)
        _judge(ledger, line, directive)


def _judge(ledger: Ledger, line: Line, directive: Directive | None) -> None:
    name = line.keyword
    if _inside(directive, "types", "map", "geo", "split_clients", "match", "charset_map", "events"):
        parent = directive.parent if directive is not None else None
        verdict = ledger.verdict_of(parent.line) if parent is not None else None
        ledger.note(line, verdict or Verdict.NODE_SETTING, PROCESS if verdict is None else "As the block around it.")
        return
    for pattern, reason in NODE:
        if re.fullmatch(pattern, name):
            ledger.note(line, Verdict.NODE_SETTING, reason)
            return
    for pattern, reason in WHY:
        if re.fullmatch(pattern, name):
            ledger.impossible(line, reason)
            return
    if name in READ and not _inside(directive, "if"):
        ledger.note(line, Verdict.DEAD, "No request that is passed to servers uses it.")
    elif name in DIRECTIVES:
        ledger.impossible(line, f"There is nothing like {name} here, or not in this place.")
    else:
        ledger.impossible(line, f"The directive {name} is not known; leave it out, or let a server behind do it.")


def _inside(directive: Directive | None, *names: str) -> bool:
    return directive is not None and directive.parent is not None and directive.parent.name in names
