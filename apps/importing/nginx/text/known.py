"""Directives that no reader takes: settings of the machine, what Spillway does itself, and what has no place."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
NO_CACHE = "Nothing is cached here."
NO_FILES = "Every request of this block is answered without files."
PAGES = "It has a page of error_page, which nodes send by themselves (error_pages); who asks for the page gets 404."
OF_TLS = r"ssl_(?:certificate|certificate_key|client_certificate|verify_client|crl)"
NO_TLS = "No port of its server asks for it: none speaks TLS."
CHALLENGES = (
    "Nodes answer challenges of ACME by themselves, for certificates that are ordered here (automatic of a hostname)."
)
NAMED = "Requests come to a named location by its try_files alone."
LOST_BLOCK = "The block around it has no place here."
OUTSIDE = "It stands outside of any server: read the file that includes this one, with this one beside it (--files)."
# The first that fits the whole name counts.
NODE = (
    ((r"user|pid|daemon|master_process|worker_.*|events|use|multi_accept|accept_mutex.*|debug_.*|env|lock_file|"
     r"load_module|pcre_jit|thread_pool|timer_resolution|working_directory|ssl_engine|google_perftools_profiles|"
     r"http|stream|include|types|default_type|types_hash.*"), PROCESS),
    (r"access_log|error_log|log_.*|open_log_file_cache|rewrite_log|uninitialized_variable_warn|session_log.*", LOGS),
    (r"status_zone|status|status_format|stub_status|zone|zone_sync.*|state|api|upstream_conf|vhost_traffic_status.*",
     STATISTICS),
    ((r"ssl_(?:ciphers|prefer_server_ciphers|ecdh_curve|dhparam|session_.*|buffer_size|stapling.*|protocols|"
     r"handshake_timeout|trusted_certificate|verify_depth|conf_command|reject_handshake|early_data)"), TLS),
    ((r"sendfile.*|tcp_.*|aio.*|directio.*|output_buffers|postpone_output|reset_timedout_connection|.*_hash_.*_size|"
     r"client_(?:body|header)_(?:buffer|temp|in).*|large_client_header_buffers|connection_pool_size|"
     r"request_pool_size|lingering_.*|keepalive_disable|keepalive_requests|http2_.*|open_file_cache.*|"
     r"(?:proxy|grpc)_(?:buffer.*|busy_.*|temp_.*|max_temp_.*|headers_hash_.*|send_lowat|socket_keepalive|"
     r"ignore_client_abort|http_version|ssl_session_reuse|ssl_ciphers|ssl_protocols|request_buffering|"
     r"force_ranges|ignore_headers)|send_lowat|subrequest_output_buffer_size|chunked_transfer_encoding|msie_.*|read_ahead|"
     r"preread_.*|server_names_hash.*|resolver.*|variables_hash.*|map_hash.*|gzip_(?:buffers|comp_level|disable|"
     r"http_version|min_length|vary|proxied)|keepalive_(?:min_timeout|time)|proxy_cache_path|limit_.*log_level|"
     r"port_in_redirect|server_name_in_redirect|absolute_redirect|server_tokens|etag|if_modified_since|"
     r"quic_.*|http3_.*|(?:fastcgi|uwsgi|scgi)_temp_path|"
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
    (r"rtmp", "Nodes pass RTMP on as tcp; write a tcp listener, and put an nginx with this block behind."),
    (r"sticky.*", "Session persistence is a setting of the pool (persistence)."),
    (r"more_(?:set|clear)_headers", "Write it in response_headers of a policy (set, remove)."),
    (r"more_(?:set|clear)_input_headers", "Write it in request_headers of a policy (set, remove)."),
    (r"modsecurity.*", "There is no ModSecurity; what it keeps out comes in."),
    (r"brotli.*|zstd.*", "Responses are compressed with gzip alone (compression of the listener)."),
    (r"health_check.*|match|check|check_.*", "Write the health check of the pool (health_check)."),
)  # fmt: skip
SERVING_FILES = (WHY[0][0], "default_type")
# What readers take where a request comes by.
READ = frozenset(
    """
    proxy_pass grpc_pass proxy_set_header grpc_set_header add_header proxy_hide_header grpc_hide_header
    proxy_pass_header grpc_pass_header client_max_body_size proxy_connect_timeout proxy_read_timeout
    proxy_send_timeout grpc_connect_timeout grpc_read_timeout grpc_send_timeout proxy_next_upstream
    proxy_next_upstream_tries proxy_ssl_verify proxy_ssl_name proxy_ssl_server_name proxy_ssl_trusted_certificate
    proxy_intercept_errors error_page limit_req limit_conn limit_req_zone limit_conn_zone limit_req_status
    limit_conn_status allow deny auth_basic
    auth_basic_user_file internal keepalive_timeout client_header_timeout client_body_timeout
    gzip gzip_types set_real_ip_from real_ip_header real_ip_recursive limit_except
    """.split()  # noqa: SIM905 - as a list it would take a screen
)

CACHES = ("proxy_cache", "grpc_cache")
CACHING = r"(?:proxy|grpc)_(?:cache|no_cache).*"
OF_FILES = ("root", "index", "gzip_static", "autoindex", "autoindex_exact_size", "autoindex_localtime")
CHALLENGE = "/.well-known/acme-challenge"
DIFFERS: Mapping[tuple[str, ...], str] = {
    ("proxy_redirect", "default"): "Redirects of servers are passed on as they are.",
    ("charset",): "Nodes add no character set to what servers say; let them name it in Content-Type.",
    ("http3", "on"): "Clients speak HTTP/2 until tls.http3 of the listener is on.",
}
# Words that say what nodes do anyhow.
AS_NODES_DO = frozenset(
    (
        ("proxy_redirect", "off"), ("expires", "off"), ("proxy_pass_request_headers", "on"),
        ("proxy_pass_request_body", "on"), ("satisfy", "all"), ("merge_slashes", "off"), ("http3", "off"),
        ("proxy_cookie_domain", "off"), ("proxy_cookie_path", "off"), ("autoindex", "off"), ("gzip_static", "off"),
        ("charset", "off"), ("ssi", "off"),
    )
)  # fmt: skip


def close(ledger: Ledger, directives: dict[tuple[str, int, int], Directive]) -> None:
    """A verdict for every line that is still without one."""
    for line in ledger.open_lines():
        directive = directives.get(line.position)
        _judge(ledger, line, directive)


def _judge(ledger: Ledger, line: Line, directive: Directive | None) -> None:
    name = line.keyword
    if directive is not None and _judge_by_place(ledger, directive):
        return
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
    _judge_by_rest(ledger, line, directive)


def _judge_by_rest(ledger: Ledger, line: Line, directive: Directive | None) -> None:
    """What no reader took, and no table knows."""
    name = line.keyword
    if directive is not None and _is_lost(ledger, directive):
        ledger.impossible(line, LOST_BLOCK)
    elif _is_named(directive):
        ledger.impossible(line, NAMED)
    elif re.fullmatch(OF_TLS, name):
        ledger.note(line, Verdict.DEAD, NO_TLS)
    elif name in READ and not _inside(directive, "if"):
        ledger.note(line, Verdict.DEAD, "No request that is passed to servers uses it.")
    elif name in DIRECTIVES and directive is not None and _is_outside(directive):
        ledger.impossible(line, OUTSIDE)
    elif name in DIRECTIVES:
        ledger.impossible(line, f"There is nothing like {name} here, or not in this place.")
    else:
        ledger.impossible(line, f"The directive {name} is not known; leave it out, or let a server behind do it.")


def _is_lost(ledger: Ledger, directive: Directive) -> bool:
    """Whether a block around it has no place here."""
    around = directive.parent
    while around is not None and ledger.has(around.line):
        if ledger.verdict_of(around.line) is Verdict.NOT_POSSIBLE:
            return True
        around = around.parent
    return False


def _is_named(directive: Directive | None) -> bool:
    """Whether a named location is around it, to which nothing that was read leads."""
    around = directive.parent if directive is not None else None
    while around is not None and around.name != "location":
        around = around.parent
    return around is not None and around.args[:1] != () and around.args[0].startswith("@")


def _inside(directive: Directive | None, *names: str) -> bool:
    return directive is not None and directive.parent is not None and directive.parent.name in names


def _judge_by_place(ledger: Ledger, directive: Directive) -> bool:
    """What a directive is worth by its words and where it stands; whether that is known."""
    line, name, block = directive.line, directive.name, directive.parent
    if (name, *directive.args) in AS_NODES_DO:
        ledger.mapped(line)
    elif why := DIFFERS.get((name, *directive.args[:1])) or DIFFERS.get((name,)):
        ledger.differs(line, why)
    elif block is not None and _is_of_challenges(block) and any(re.fullmatch(each, name) for each in SERVING_FILES):
        ledger.differs(line, CHALLENGES)
    elif re.fullmatch(CACHING, name) and block is not None and not _caches(block):
        ledger.note(line, Verdict.DEAD, NO_CACHE)
    elif name in ("root", "alias") and block is not None and _has_pages_alone(block):
        ledger.differs(line, PAGES)
    elif name in OF_FILES and block is not None and not _uses_files(block, name):
        ledger.note(line, Verdict.DEAD, NO_FILES)
    else:
        return False
    return True


def _is_of_challenges(block: Directive) -> bool:
    """Whether it is the location at which a certificate authority asks for the files of ACME (RFC 8555, 8.3)."""
    return block.name == "location" and any(CHALLENGE in each for each in block.args)


def _caches(block: Directive) -> bool:
    """Whether anything is cached in the block: it says so, or one around or inside of it."""
    around: Directive | None = block
    while around is not None:
        if any(_is_on(each) for each in around.each(*CACHES)):
            return True
        around = around.parent
    return any(each.name in CACHES and _is_on(each) for each in block.everything())


def _is_on(cache: Directive) -> bool:
    return cache.args != ("off",)


def _has_pages_alone(block: Directive) -> bool:
    """Whether it is the location of one page that an `error_page` around it names."""
    if block.name != "location" or block.parent is None or not block.args:
        return False
    asked = any(each.args[-1:] == block.args[-1:] for each in block.parent.everything() if each.name == "error_page")
    return asked and (block.args[0] == "=" or any(block.each("internal"))) and not any(block.each("proxy_pass"))


def _answers(block: Directive) -> bool:
    """Whether a location asks servers, or answers itself, whatever files there are."""
    return any(block.each("proxy_pass", "grpc_pass", "return")) and not any(block.each("try_files"))


def _uses_files(block: Directive, name: str) -> bool:
    """Whether a request of the block may look for a file and use this directive of it, as far as blocks say."""
    inside = [each for each in block.everything() if each.name == "location"]
    if any(not _answers(each) and not any(each.each(name, "alias", "internal")) for each in inside):
        return True
    if block.name == "location":
        return not _answers(block)
    if block.name in ("http", ""):
        servers = list(block.each("server"))
        return not servers or any(_uses_files(each, name) for each in servers)
    if block.name != "server":
        return True
    takes_all = any(each.args in (("/",), ("^~", "/")) for each in block.each("location"))
    return any(block.each("try_files")) or not (takes_all or any(block.each("return")))


def _is_outside(directive: Directive) -> bool:
    """Whether neither it nor a block around it is a server, of a file that says no http."""
    around: Directive | None = directive
    while around is not None:
        if around.name in ("server", "http", "stream", "upstream", "mail"):
            return False
        around = around.parent
    return True
