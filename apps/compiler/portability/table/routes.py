"""What targets can of the fields of a route; an NLB has none, since it knows connections and no requests.

HAProxy copies requests only by an agent that speaks its own protocol (SPOE). Debian packages none, and Spillway runs no
other programs beside HAProxy. The sources for clouds stand in their `capabilities.py`.
"""

from __future__ import annotations

from typing import Any

from apps.compiler.portability.table.cells import UNUSED, Row, cannot, lossy

_MATCH = "headers.match"
_LEAVE = "Leave the scheme out, or serve the route only over http."
_WHOLE = "Compare the whole value, or its prefix."
_ALB_PATTERN = cannot("Spillway does not support regular expressions on an ALB.", _WHOLE)
_QUERY = "Google Cloud checks only that a query parameter is present or equals a value."
_ABSENT = "Put a route for requests that have it before this one, and leave the condition out."


def _row(field: str, value: str = "", **cells: Any) -> Row:
    return Row(field, nlb=UNUSED, value=value, **cells)


ROUTES = (
    _row(
        "hostname",
        alb=lossy(
            "An ALB compares hostnames of at most 128 characters, with only letters after the last dot; its * matches "
            "any number of labels, so *. cannot stand beside **. of the same domain.",
            "Use a shorter hostname, and **. instead of *.",
        ),
        google=lossy(
            "On Google Cloud, * matches any number of labels.",
            "Create separate routes for deeper hostnames that must not reach it.",
        ),
    ),
    _row(
        "path",
        alb=lossy(
            "An ALB compares paths of at most 128 characters, of letters, digits and _ - . $ / ~ @ : +.",
            "Use a shorter path without other characters.",
        ),
        google=lossy("Google Cloud compares prefixes of at most 1023 characters.", "Use a shorter prefix."),
    ),
    _row("path_kind"),
    _row(
        "path_kind",
        "regex",
        alb=cannot("Spillway does not support regular expressions on an ALB.", "Use a prefix or exact paths."),
        google=cannot(
            "Google Cloud's global load balancers do not support regular expressions.", "Use a prefix or exact paths."
        ),
    ),
    _row("methods"),
    _row("scheme"),
    _row(
        "headers",
        alb=lossy(
            "An ALB ignores case in values, treats * and ? in them as wildcards, and has at most five conditions.",
            "Use short values that differ by more than case.",
        ),
    ),
    _row(
        _MATCH,
        "regex",
        alb=_ALB_PATTERN,
        google=cannot("Google Cloud's global load balancers do not support regular expressions.", _WHOLE),
    ),
    _row(_MATCH, "present"),
    _row(_MATCH, "absent", alb=cannot("An ALB cannot check that a header is absent.", _ABSENT)),
    _row(
        "query",
        alb=lossy("An ALB ignores case in values.", "Use values that differ by more than case."),
    ),
    _row("query.match", "prefix", google=cannot(_QUERY, "Compare the whole value.")),
    _row("query.match", "regex", alb=_ALB_PATTERN, google=cannot(_QUERY, "Compare the whole value.")),
    _row(
        "query.match",
        "present",
        google=lossy("Google Cloud also treats a parameter without = as present.", "Send a value with the parameter."),
    ),
    _row(
        "query.match",
        "absent",
        alb=cannot("An ALB cannot check that a parameter is absent.", _ABSENT),
        google=cannot(_QUERY, "Compare the whole value."),
    ),
    _row(
        "cookies",
        alb=cannot(
            "An ALB compares only the whole Cookie header, not a single cookie.",
            "Have clients send a separate header, and compare that.",
        ),
        google=cannot(
            "Google Cloud compares only the whole Cookie header, not a single cookie.",
            "Have clients send a separate header, and compare that.",
        ),
    ),
    _row(
        "client_networks",
        alb=lossy("An ALB rule compares at most three networks.", "Use fewer or larger networks."),
        google=cannot(
            "A URL map does not support client networks; Cloud Armor does, but Spillway does not configure it.",
            "Serve the route from a fleet or from AWS.",
        ),
    ),
    _row(
        "prefix_rewrite",
        alb=cannot("Spillway cannot rewrite a path prefix on an ALB.", "Have the servers accept the original path."),
    ),
    Row(
        "mirror",
        haproxy=cannot(
            "HAProxy copies requests only with an agent of its own protocol (SPOE), and none is packaged.",
            "Serve the route from Google Cloud alone, or leave mirror out.",
        ),
        alb=cannot(
            "Neither an ALB nor an NLB copies requests to a second pool.",
            "Serve the route from Google Cloud alone, or leave mirror out.",
        ),
        nlb=UNUSED,
        google=lossy(
            "Google Cloud adds -shadow to the Host header of copies.",
            "Have the servers of the mirror pool accept these hosts.",
        ),
    ),
    _row(
        "action.pools",
        alb=lossy(
            "An ALB splits traffic among at most five target groups, one for each pool and region.",
            "Use fewer pools, or pools in fewer regions.",
        ),
    ),
    _row(
        "action.redirect.code",
        alb=lossy("An ALB redirects only with 301 and 302.", "Use 301 or 302."),
    ),
    _row(
        "action.redirect.scheme",
        alb=lossy("An ALB does not redirect from https to http.", _LEAVE),
        google=lossy("Google Cloud does not redirect from https to http.", _LEAVE),
    ),
    _row(
        "action.redirect.host",
        alb=lossy("An ALB redirects only to hosts of at most 128 characters.", "Shorten the host."),
    ),
    _row(
        "action.redirect.port",
        google=cannot(
            "Google Cloud cannot redirect to another port.",
            "Listen on the default port of the scheme, and leave the port out.",
        ),
    ),
    _row(
        "action.redirect.path",
        alb=lossy(
            "An ALB redirects only to paths of at most 128 characters, of letters, digits and _ - . $ / ~ @ : +.",
            "Use a shorter path without other characters.",
        ),
    ),
    _row(
        "action.redirect.prefix",
        alb=lossy(
            "An ALB can put a prefix only before the whole path, of a route for /.",
            "Redirect to a path, or create a route for each path.",
        ),
    ),
    _row("action.redirect.keep_query"),
    _row(
        "action.redirect.query",
        alb=lossy("If a request has no query, an ALB writes ?& before the query that the redirect adds."),
        google=cannot(
            "Google Cloud keeps or removes the query in a redirect, but cannot add to it.", "Leave query out."
        ),
    ),
    _row(
        "action.fixed_response.status",
        google=lossy("Google Cloud returns the status with its own short text instead of an empty body."),
    ),
    _row(
        "action.fixed_response.content_type",
        alb=lossy(
            "An ALB returns only plain text, HTML, CSS, JavaScript and JSON, in UTF-8.", "Use one of these types."
        ),
        google=lossy("Google Cloud returns the status with its own short text, of its own type."),
    ),
    _row(
        "action.fixed_response.body",
        alb=lossy("An ALB returns at most 1024 characters.", "Shorten the body, or serve it from a server."),
        google=cannot(
            "Google Cloud returns the status with its own short text.",
            "Leave the body empty, or serve the response from a server.",
        ),
    ),
)
