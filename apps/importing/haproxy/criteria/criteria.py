"""Criteria of ACLs as formulas: which question about a request a fetch, its converters and its values ask."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from apps.compiler.model.listener_options import ClientProtocol
from apps.importing.context import FORWARDED_PROTO
from apps.importing.files import Files
from apps.importing.haproxy.criteria import beginnings
from apps.importing.haproxy.criteria.asked import Asked, argument, constant_matches, cut_off, cuts_port, said
from apps.importing.haproxy.criteria.numbers import OPERATORS, asks_any, compared
from apps.importing.haproxy.criteria.samples import Sample, parse_sample
from apps.importing.logic.formulas import Atom, Formula, all_of, any_of, negated, replaced
from apps.importing.logic.questions import Questions
from apps.importing.values.moves import KEPT

MATCHES = ("beg", "dir", "dom", "end", "len", "reg", "sub", "val", "cnt", "ip")
_SUFFIXED = re.compile(
    rf"((?:re[qs][._])?hdr|base|cook|path|url|urlp|url_param|ssl_fc_sni|req[._]ssl_sni|shdr)_({'|'.join(MATCHES)})(\(.*)?",
    re.DOTALL,
)
_HOST_FETCHES = {"hdr", "req.hdr", "req.fhdr", "req_hdr"}
_SNI = {"ssl_fc_sni", "req.ssl_sni", "req_ssl_sni"}
_HARMLESS = {"lower", "url_dec", "host_only", "port_only", "strip", "rtrim", "ltrim", "str", "hostname", "utf8"}
_RATE = re.compile(
    r"(?:src_|sc[0-9]?_)(http_req_rate|http_req_cnt|conn_rate|conn_cnt|conn_cur|sess_rate|sess_cnt|bytes_out_rate|"
    r"bytes_in_rate|http_err_rate|http_err_cnt|get_gpc0|gpc0_rate|get_gpt0|get_gpc1|gpc1_rate|http_fail_rate)"
)
# They count, and hold.
_COUNTS = re.compile(r"(?:src_|sc[0-9]?_)(?:inc|clr)_gpc[01]?")
# What the first bytes of a connection are.
_LENGTH = {"req.len", "req_len"}
_PAYLOAD = {"payload", "req.payload"}
_ALPN = {"req.ssl_alpn", "req_ssl_alpn", "ssl_fc_alpn"}
_TLS = {"req.ssl_hello_type", "req_ssl_hello_type", "req.ssl_ver", "req_ssl_ver", "req.ssl_hello"}
_WITH_QUERY = {"url", "uri", "pathq", "capture.req.uri"}
_HTTP = {"req.proto_http", "req_proto_http"}
# Headers by which a proxy in front names the client; of others nobody knows whose address they hold.
_NAME_CLIENTS = {"x-forwarded-for", "x-real-ip", "cf-connecting-ip", "true-client-ip"}
# Headers whose values stand between commas, or that have commas in them: each part is compared by HAProxy.
_LISTS = frozenset(
    {
        *("accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "cookie", "forwarded"),
        *("if-none-match", "referer", "te", "user-agent", "via", "x-forwarded-for"),
    }
)
_PORT = re.compile(r":[0-9]+\Z")
ANY_PORT = "Requests for this host are taken with any port behind it, and with none."
_BOUNDED = re.compile(r"[\^$]|\.[*+]")
AS_A_WHOLE = "The header is compared as a whole, and not each of its parts between commas."
OF_CLIENT = "The address of the client is asked, as its listener knows it (client_address), and not each of the header."
OF_HOST = "The host of the request is asked, and not the name of its TLS connection."
UNDERSCORED = "A request with an underscore in the name of a header is answered 403, so no request has this one."
VERSIONS = "Versions of HTTP are not told apart; every request is taken for one of HTTP/1.1."
NOT_DECODED = "It is compared as clients write it, so what is encoded is not found; let the servers ask it as well."
_STATE = {
    *("nbsrv", "srv_is_up", "srv_conn", "be_conn", "fe_conn", "connslots", "avg_queue", "queue", "be_sess_rate"),
    *(
        "fe_sess_rate",
        "srv_sess_rate",
        "be_id",
        "srv_queue",
        "be_conn_free",
        "srv_conn_free",
        "fe_req_rate",
        "stopping",
    ),
}
_OF_REQUESTS = frozenset(
    {
        *("path", "pathq", "url", "uri", "base", "method", "query", "urlp", "url_param", "req.urlp", "req.hdr"),
        *("req.fhdr", "req_hdr", "req.cook", "req.hdr_cnt", "req.fhdr_cnt", "req.body_size", "req.body_len"),
        *("http_auth", "http_auth_group", "hdr_ip"),
    }
)
_SERVER = frozenset({"srv_id", "srv_name"})  # `http-response` is for what servers answer
_OF_ANSWERS = _SERVER | frozenset({"res.hdr", "res.fhdr", "res_hdr", "shdr", "res.hdr_cnt", "res.fhdr_cnt"})
_OF_EITHER = frozenset({"hdr", "hdr_cnt", "hdr_val", "cook"})


@dataclass(slots=True)
class Variables:
    """What `set-var` gives variables: each value with the condition under which it was set."""

    given: dict[str, list[tuple[str, Formula]]] = field(default_factory=dict)


class Criteria(Questions):
    """Reads criteria; `missing` are the files that were not given."""

    def __init__(self, files: Files, variables: Variables, environment: Mapping[str, str]) -> None:
        super().__init__()
        self.files = files
        self.variables = variables
        self.environment = environment
        # Where requests are read, the name of TLS is that of the host; tcp chooses by it alone.
        self.reads_requests = True
        # HAProxy has read nothing when a section of tcp chooses, unless it waits (inspect-delay).
        self.waits = True
        # HAProxy no longer has the request when it answers: what asks it there never holds.
        self.of_responses = False

    def read(self, words: tuple[str, ...]) -> Formula:
        """The formula of `hdr_beg(host) -i www. static.` and the like."""
        criterion, match = words[0], ""
        if found := _SUFFIXED.fullmatch(criterion):
            criterion, match = found[1] + (found[3] or ""), found[2]
            criterion = f"{criterion}" if match not in ("val", "cnt", "ip") else f"{found[1]}_{match}{found[3] or ''}"
            match = match if match not in ("val", "cnt", "ip") else ""
        sample = parse_sample(criterion)
        if sample is None:
            return self.unknown(f"the expression {criterion} is not understood")
        asked = Asked(sample, match, [])
        missing = self._flags(asked, words[1:])
        return self.unknown(missing) if missing else self._formula(asked)

    def _flags(self, asked: Asked, words: tuple[str, ...]) -> str:
        """Flags, then values; the name of a file that is missing is said."""
        at = 0
        while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
            flag = words[at]
            at += 1
            if flag == "-i":
                asked.ignore_case = True
            elif flag == "-m" and at < len(words):
                asked.match = words[at]
                at += 1
            elif flag == "-f" and at < len(words):
                lines = self.files.lines(words[at])
                if lines is None:
                    return f"the file {words[at]} was not given"
                asked.values += lines
                at += 1
            elif flag == "-u":
                at += 1
            elif flag == "--":
                break
        asked.values += words[at:]
        return ""

    def _formula(self, asked: Asked) -> Formula:
        if asked.sample.fetch == "var" and asked.sample.args:
            return self._of_variable(asked)
        if asked.sample.fetch == "capture.req.hdr":
            return self._of_capture(asked)
        for at, (name, args) in enumerate(asked.sample.converters):
            if name.startswith("map"):
                return self._of_map(asked, at, name, args)
        if asked.sample.converter_names and asked.sample.converter_names[-1] == "not":
            rest = Sample(asked.sample.fetch, asked.sample.args, asked.sample.converters[:-1])
            return negated(self._formula(Asked(rest, asked.match, asked.values, asked.ignore_case)))
        if _of_two_lengths(asked) or self._has_no_request(asked):
            return False
        if self.of_responses and asked.sample.fetch in _OF_EITHER | _OF_ANSWERS:
            return self._of_answer(asked)
        return self._of_fetch(asked)

    def _has_no_request(self, asked: Asked) -> bool:
        """Whether it asks for a request that HAProxy has not read yet, or no longer has."""
        unread = not self.reads_requests and not self.waits
        return (self.of_responses or unread) and asked.sample.fetch in _OF_REQUESTS | (_OF_EITHER if unread else set())

    def _of_variable(self, asked: Asked) -> Formula:
        given = self.variables.given.get(asked.sample.args[0], [])
        if not given:
            return self.unknown(f"the variable {asked.sample.args[0]} is set by nothing that is understood")
        if asked.match == "found":
            return any_of([condition for _, condition in given])
        return any_of([all_of([condition, self._kept(text, asked)]) for text, condition in given])

    def _of_capture(self, asked: Asked) -> Formula:
        """The header that the one frontend of the file captures in this slot."""
        given = self.variables.given.get(f"capture.req.hdr({argument(asked)})", [])
        if len(given) != 1:
            return self.unknown(f"{said(asked)} is what no frontend or several capture otherwise")
        return self._kept(given[0][0], asked)

    def _of_answer(self, asked: Asked) -> Formula:
        """What a server says: whether a header is there, and of which media type a response is."""
        if asked.sample.fetch in _SERVER:
            return True if asked.match == "found" else self.unknown(f"{said(asked)} is of the response")
        name, why = argument(asked).lower(), f"{said(asked)} is of the response"
        is_there = self.atoms.get("answer", "found", name=name, why=why)
        if asked.sample.fetch.endswith("_cnt"):
            any_of_them = asks_any(asked.values)
            return self.unknown(why) if any_of_them is None else is_there if any_of_them else negated(is_there)
        if asked.match == "found" and not asked.sample.converters:
            return is_there
        if name != "content-type" or set(asked.sample.converter_names) - _HARMLESS:
            return self.unknown(why)
        if asked.match == "reg":
            texts = [self.of_regex(value, "answer", name, ignore_case=True, why=why) for value in asked.values]
            return any_of(texts)
        return self.atoms.get("answer", asked.match or "str", tuple(asked.values), name=name, why=why)

    def _kept(self, text: str, asked: Asked) -> Formula:
        """The comparison with what was kept of the request, while it is answered as well."""
        answering, self.of_responses = self.of_responses, False
        found = self._compared(text, asked)
        self.of_responses = answering
        return replaced(found, self._before_changes)

    def _before_changes(self, atom: Atom) -> Atom:
        """A question about the path that was kept, whatever becomes of that of the request."""
        if atom.subject != "path":
            return atom
        return self.atoms.get("path", atom.match, atom.values, name=KEPT, ignore_case=atom.ignore_case, why=atom.why)

    def _compared(self, text: str, asked: Asked) -> Formula:
        """The comparison with what the variable was given: a constant, or another sample."""
        sample = parse_sample(text)
        if sample is None:
            return self.unknown(f"the expression {text} is not understood")
        if sample.fetch in ("str", "int", "bool") and sample.args:
            return self._of_constant(Asked(sample, asked.match, asked.values))
        both = Sample(sample.fetch, sample.args, sample.converters + asked.sample.converters)
        return self._formula(Asked(both, asked.match, asked.values, asked.ignore_case))

    def _of_constant(self, asked: Asked) -> Formula:
        """A text that is known, such as that of a variable of the environment (words.py)."""
        constant = argument(asked)
        if asked.match == "found":
            return constant != ""
        if asked.match == "bool" or not asked.values:
            return constant.lower() in ("true", "1")
        if asked.values[0] in OPERATORS:
            return constant.lstrip("-").isdecimal() and compared(asked.values, int(constant))
        return any(constant_matches(asked.match, constant, value) for value in asked.values)

    def _of_map(self, asked: Asked, at: int, name: str, args: tuple[str, ...]) -> Formula:
        """Which keys of the map lead to a value that the criterion takes."""
        entries = self.files.entries(args[0]) if args else None
        if entries is None:
            return self.unknown(f"the map {args[0] if args else ''} was not given")
        kind = name.partition("_")[2].split("_")[0] or "str"
        wanted = [
            key
            for key, value in entries
            if asked.match == "found" or any(constant_matches(asked.match, value, each) for each in asked.values)
        ]
        sample = Sample(asked.sample.fetch, asked.sample.args, asked.sample.converters[:at])
        return self._formula(Asked(sample, kind, wanted)) if wanted else False

    def map_keys(self, sample: Sample, kind: str, key: str) -> Formula:
        """Whether this key of a map is the one of the request."""
        return self._formula(Asked(sample, kind, [key]))

    def _of_fetch(self, asked: Asked) -> Formula:
        fetch = asked.sample.fetch
        first = asked.sample.args[0].lower() if asked.sample.args else ""
        if not self.reads_requests and (kind := beginnings.of_request(asked)):
            return self._of_beginning(kind)
        if fetch in _HOST_FETCHES and first == "host":
            return self._of_host(asked)
        if fetch in _SNI:
            return self._values(asked, "host", why=OF_HOST) if self.reads_requests else self._values(asked, "sni")
        if _COUNTS.fullmatch(fetch):
            return True
        if found := _RATE.fullmatch(fetch):
            return self._of_rate(asked, found[1])
        reader = _READERS.get(fetch)
        if reader is not None:
            return reader(self, asked)
        if fetch in _STATE:
            return self.atoms.get("state", fetch, (*asked.sample.args, *asked.values), why=said(asked))
        return self.unknown(f"{said(asked)} is nothing that a route can ask")

    def _of_host(self, asked: Asked) -> Formula:
        if asked.match == "found":
            return True
        changes = [each for each in asked.sample.converters if each[0] not in _HARMLESS and not cuts_port(each)]
        if not changes:
            return self._values(asked, "host")
        values = tuple(value.lower() for value in asked.values)
        if len(changes) == 1 and (asked.match or "str") == "str":
            (name, args), *_ = changes
            if name in ("field", "word") and args == ("1", "."):
                return self.atoms.get("host", "beg", tuple(f"{value}." for value in values))
            if name == "regsub" and (cut := cut_off(args)):
                return self.atoms.get("host", "str", (*values, *(cut + value for value in values)))
        return self.unknown(f"{said(asked)} changes the host")

    def _of_rate(self, asked: Asked, counter: str) -> Formula:
        digits = re.findall(r"[0-9]", asked.sample.fetch.partition("_")[0]) or [
            each for each in asked.sample.args if each.isdecimal()
        ]
        tables = [each for each in asked.sample.args if not each.isdecimal()]
        name = tables[0] if tables else f"#{digits[0] if digits else 0}"
        return self.atoms.get("rate", counter, tuple(asked.values), name=name, why=said(asked))

    def _values(self, asked: Asked, subject: str, name: str = "", why: str = "") -> Formula:
        """A question of texts; regular expressions that stand for few texts become those."""
        match = asked.match or "str"
        if match == "found":
            return self.atoms.get(subject, "found", name=name)
        if "url_dec" in asked.sample.converter_names:
            why = f"{why} {NOT_DECODED}".strip()
        if match == "len" and asked.values in (["0"], ["eq", "0"]):
            filled = self.atoms.get(subject, "reg", ("^.+$",), name=name, why=why)
            return all_of([self.atoms.get(subject, "found", name=name), negated(filled)])
        if match in ("len", "int", "bool", "bin", "ip"):
            return self.unknown(f"{said(asked)} is nothing that a route can ask")
        ignore_case = asked.ignore_case or "lower" in asked.sample.converter_names
        if match == "reg":
            return any_of(
                [self.of_regex(value, subject, name, ignore_case=ignore_case, why=why) for value in asked.values]
            )
        values = tuple(value.lower() for value in asked.values) if subject in ("host", "sni") else tuple(asked.values)
        if subject == "host" and match == "str":
            bare = tuple(dict.fromkeys(_PORT.sub("", value) for value in values))
            why = f"{why} {ANY_PORT}".strip() if set(bare) - set(values) else why
            values = bare
        return self.of_texts(subject, match, values, name=name, ignore_case=ignore_case, why=why)

    def _of_header(self, asked: Asked) -> Formula:
        name = argument(asked).lower()
        if "_" in name:
            return self.atoms.get("never", name=name, why=UNDERSCORED)
        if beginnings.of_request(asked) == ClientProtocol.WEBSOCKET:
            return self.atoms.get("header", values=("websocket",), name="upgrade")
        told = None
        if name == FORWARDED_PROTO and (asked.match or "str") in ("str", "beg"):
            told = self.of_told_scheme(asked.values)
        return told if told is not None else self._values(asked, "header", name, _of_list(asked, name))

    def _of_path(self, asked: Asked) -> Formula:
        converters = asked.sample.converters
        for name, args in converters:
            if name in ("word", "field") and args[-1:] == ("/",) and args[0] == ("1" if name == "word" else "2"):
                if (asked.match or "str") == "str":
                    return self.atoms.get("path", "segment", tuple(asked.values))
                if asked.match == "found":
                    return True
            elif name not in _HARMLESS:
                return self.unknown(f"{said(asked)} changes the path")
        if asked.match == "found":
            return True
        asks_query = asked.sample.fetch in _WITH_QUERY and (asked.match or "str") not in ("beg", "dir")
        return self._values(asked, "path", why="Paths are compared without their query." if asks_query else "")

    def _of_base(self, asked: Asked) -> Formula:
        """Host and path in one text."""
        match = asked.match or "str"
        if match not in ("str", "beg"):
            return self.unknown(f"{said(asked)} asks for host and path in one text")
        parts: list[Formula] = []
        for value in asked.values:
            host, mark, path = value.partition("/")
            if not mark:
                parts.append(self.unknown(f"{said(asked)} asks for a part of the host"))
                continue
            of_host: Formula = self.atoms.get("host", "str", (host.lower(),)) if host else True
            parts.append(all_of([of_host, self.atoms.get("path", match, ("/" + path,), ignore_case=asked.ignore_case)]))
        return any_of(parts)

    def _of_source(self, asked: Asked) -> Formula:
        by_header = asked.sample.fetch != "src"
        if by_header and argument(asked).lower() not in _NAME_CLIENTS:
            return self.unknown(f"{said(asked)} is nothing that a route can ask")
        networks, odd = [], []
        for value in asked.values:
            try:
                networks.append(str(ipaddress.ip_network(value, strict=False)))
            except ValueError:
                odd.append(value)
        if odd or asked.sample.converters:
            return self.unknown(f"{said(asked)} is no list of networks")
        return self.atoms.get("source", "in", tuple(sorted(networks)), why=OF_CLIENT if by_header else "")

    def _of_count(self, asked: Asked) -> Formula:
        """`hdr_cnt(X) gt 0` is whether it is there."""
        name = argument(asked).lower()
        if name == "host":
            return compared(asked.values, 1)
        if "_" in name:
            present: Formula = self.atoms.get("never", name=name, why=UNDERSCORED)
        else:
            present = self.atoms.get("header", "found", name=name)
        is_there = asks_any(asked.values)
        if is_there is None:
            return self.unknown(f"{said(asked)} counts headers")
        return present if is_there else negated(present)

    def _of_size(self, asked: Asked) -> Formula:
        """Whether the body of the request is longer than a number of bytes."""
        is_length = (
            asked.sample.fetch in ("req.body_size", "req.body_len") or argument(asked).lower() == "content-length"
        )
        numbers = [value for value in asked.values if value.isdecimal()]
        if is_length and len(numbers) == 1 and asked.values[0] in ("gt", "ge"):
            return self.atoms.get("size", asked.values[0], (numbers[0],), why=said(asked))
        return self.unknown(f"{said(asked)} is nothing that a route can ask")

    def _of_scheme(self, asked: Asked) -> Formula:
        is_no = [value.lower() for value in asked.values] in (["false"], ["0"], ["eq", "0"])
        atom = self.atoms.get("scheme", "https")
        return negated(atom) if is_no else atom

    def _of_version(self, asked: Asked) -> Formula:
        another = self.atoms.get("never", name="version", why=VERSIONS)
        return negated(another) if "1.1" in asked.values else another

    def _of_beginning(self, kind: str) -> Formula:
        """Whether a connection begins so; where requests are read, it is one of HTTP."""
        if self.reads_requests:
            return kind in ("tls", "http")
        return self.atoms.get("unknown", kind, why=f"connections are not told apart by what they speak ({kind})")

    def _of_length(self, asked: Asked) -> Formula:
        """Whether anything came; how much is asked by nobody."""
        silent, came = self._of_beginning("silent"), asks_any(asked.values)
        if came is None:
            return True
        return negated(silent) if came else silent

    def _of_payload(self, asked: Asked) -> Formula:
        """Whether a client says what it speaks."""
        if "mqtt_is_valid" in asked.sample.converter_names:
            return self._of_beginning("mqtt")
        if kind := beginnings.of_payload(asked):
            return self._of_beginning(kind)
        return self.unknown(f"{said(asked)} is nothing that a listener can ask")

    def _of_alpn(self, asked: Asked) -> Formula:
        """Which protocol the client's TLS offers, or agreed on; a request is of HTTP by either."""
        if self.reads_requests or (asked.match or "str") != "str" or asked.sample.converters:
            return self.unknown(f"{said(asked)} is nothing that a route can ask")
        why = "connections are told apart by ALPN on listeners of tcp alone"
        way = "agreed" if asked.sample.fetch == "ssl_fc_alpn" else "offered"
        return any_of([self.atoms.get("unknown", "alpn", (value,), name=way, why=why) for value in asked.values])

    def _of_port(self, asked: Asked) -> Formula:
        return self.atoms.get("port", "int", tuple(asked.values))


def _of_two_lengths(asked: Asked) -> bool:
    """Whether it holds for several Content-Length alone: HAProxy refuses those that differ, and joins the others."""
    is_length = asked.sample.fetch.endswith("hdr_cnt") and argument(asked).lower() == "content-length"
    return is_length and not any(compared(asked.values, count) for count in (0, 1))


def _of_list(asked: Asked, name: str) -> str:
    """What differs where HAProxy compares parts of a header; a text within it is in one of its parts."""
    match = asked.match or "str"
    bounded = match in ("str", "beg", "end") or (match == "reg" and any(map(_BOUNDED.search, asked.values)))
    return AS_A_WHOLE if bounded and name in _LISTS and asked.sample.fetch != "req.fhdr" else ""


_READERS: dict[str, Callable[[Criteria, Asked], Formula]] = {
    "path": Criteria._of_path,
    "pathq": Criteria._of_path,
    "url": Criteria._of_path,
    "capture.req.uri": lambda self, asked: replaced(self._of_path(asked), self._before_changes),
    "uri": Criteria._of_path,
    "base": Criteria._of_base,
    "method": lambda self, asked: self.atoms.get("method", "str", tuple(asked.values)),
    "capture.req.method": lambda self, asked: self.atoms.get("method", "str", tuple(asked.values)),
    "src": Criteria._of_source,
    "hdr_ip": Criteria._of_source,
    "req.hdr_ip": Criteria._of_source,
    **dict.fromkeys(("req.ver", "req_ver"), Criteria._of_version),
    "ssl_fc": Criteria._of_scheme,
    "ssl_fc_used": Criteria._of_scheme,
    "dst_port": Criteria._of_port,
    "always_true": lambda _self, _asked: True,
    "always_false": lambda _self, _asked: False,
    **dict.fromkeys(("bool", "str", "int"), Criteria._of_constant),
    "http_auth": lambda self, asked: self.atoms.get("auth", name=argument(asked)),
    "http_auth_group": lambda self, asked: self.atoms.get("auth", values=tuple(asked.values), name=argument(asked)),
    **dict.fromkeys(("hdr_val", "req.hdr_val", "req.body_size", "req.body_len"), Criteria._of_size),
    "hdr_cnt": Criteria._of_count,
    "req.hdr_cnt": Criteria._of_count,
    "req.fhdr_cnt": Criteria._of_count,
    **dict.fromkeys(
        ("hdr", "req.hdr", "req.fhdr", "req_hdr"),
        Criteria._of_header,
    ),
    **dict.fromkeys(("cook", "req.cook"), lambda self, asked: self._values(asked, "cookie", argument(asked))),
    **dict.fromkeys(
        ("urlp", "url_param", "req.urlp"), lambda self, asked: self._values(asked, "query", argument(asked))
    ),
    "wait_end": lambda _self, _asked: True,
    **dict.fromkeys(_LENGTH, Criteria._of_length),
    **dict.fromkeys(_PAYLOAD, Criteria._of_payload),
    **dict.fromkeys(_ALPN, Criteria._of_alpn),
    **dict.fromkeys(_TLS, lambda self, _: self._of_beginning("tls")),
    **dict.fromkeys(_HTTP, lambda self, _: self._of_beginning("http")),
}
