"""A configuration of another load balancer by page: in, the report and the plan out; no file is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.core.errors import FieldError, Invalid, SpillwayError
from apps.definitions.services import apply_plan
from apps.fleet import selectors as topology
from apps.importing.formats import FORMATS, files_in_words
from apps.importing.npm.database import MAGIC
from apps.importing.ordering import BY_COMMAND, MAPS, MOST_BYTES, read_order
from apps.importing.services import PlannedImport, plan_import
from apps.importing.verdicts import LineReport, Verdict
from apps.web.kit import differences
from apps.web.kit.field_errors import attach_errors
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show_once
from apps.web.kit.saving import telling
from apps.web.kit.shape_fields import LINES, account_field
from apps.web.kit.undoing import say_done

PASTED = "pasted text"
AS_DUMP = "is an SQLite file; send what the command sqlite3 FILE .dump prints."
LINES_SHOWN, OBJECTS_SHOWN = 300, 60
# The worst first: word of the state component, heading, and what it means.
VERDICTS = {
    Verdict.NOT_POSSIBLE: ("refused", "Not possible", "It has no place here. The reason says what to use instead."),
    Verdict.DIFFERENT: ("degraded", "Different", "It works, and differs in what the reason says."),
    Verdict.DEAD: ("superseded", "Dead", "Nothing uses it, or it was ignored."),
    Verdict.NODE_SETTING: (
        "draft",
        "Node setting",
        "A setting of the machine, or something that Spillway does itself.",
    ),
    Verdict.MAPPED: ("done", "Mapped", "It works as it did."),
}
WARNINGS = (Verdict.NOT_POSSIBLE, Verdict.DIFFERENT)
HINTS = {
    "servers": ("Servers", "Where a server is now: 127.0.0.1:8080=app-1:8080, one per line."),
    "certificates": ("Certificates", "File of the certificate=certificate in Spillway, one per line."),
    "addresses": ("Addresses", "Address of bind=static IP in Spillway, one per line."),
    "environment": ("Variables", "NAME=value, one per line. Not shown again."),
    "passwords": ("Passwords", "User=password where the file has a hash, one per line. Not shown again."),
}
# Whoever opens the page again types these anew.
SECRET = ("/environment", "/passwords")


class _Several(forms.ClearableFileInput):
    allow_multiple_selected = True


class _Files(forms.FileField):
    """Any number of files; those of a folder as well."""

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        """All of them."""
        return [super(_Files, self).clean(each, initial) for each in data or [] if each]


class ImportForm(forms.Form):
    """The files, and answers to what they cannot know; fields of the order are named by their pointers."""

    use_required_attribute = False

    def __init__(self, *args: Any, request: PageRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        hint = f"Choose {files_in_words()}, and the maps, lists, certificates and error pages that it names."
        self.fields["/files"] = _Files(label="Files", required=False, widget=_Several(), help_text=hint)
        pasted = forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono", "autocomplete": "off"})
        self.fields["pasted"] = forms.CharField(label=f"… or paste {files_in_words()}", required=False, widget=pasted)
        self.fields["/file"] = forms.CharField(
            label="Name of the configuration", required=False, help_text="Only if several files look like it."
        )
        formats = [("", "recognise it"), *((each.name, each.title) for each in FORMATS.values())]
        self.fields["/format"] = forms.ChoiceField(label="Format", choices=formats, required=False)
        fleets = [(row.name, row.name) for row in topology.fleets(request.actor)]
        self.fields["/fleets"] = forms.MultipleChoiceField(
            label="Fleets", choices=fleets, required=False, widget=forms.CheckboxSelectMultiple(),
            initial=[name for name, _ in fleets] if len(fleets) == 1 else None,
            help_text="They run the load balancers.",
        )  # fmt: skip
        self.fields["/account"] = account_field("Owns routes and pools. Default: the operator.")
        regions = [("", "that of the fleet"), *((row.name, row.name) for row in topology.regions(request.actor))]
        self.fields["/region"] = forms.ChoiceField(label="Region of the servers", choices=regions, required=False)
        self.fields["/prefix"] = forms.CharField(
            label="Prefix", required=False, help_text="Put before every name, such as shop-."
        )
        for name, (label, hint) in HINTS.items():
            widget = forms.Textarea(attrs=LINES | {"autocomplete": "off"})
            self.fields[f"/{name}"] = forms.CharField(label=label, required=False, widget=widget, help_text=hint)

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields by heading."""
        where = ("/fleets", "/account", "/region", "/prefix")
        named: dict[str, tuple[str, ...]] = {
            "Configuration": ("/files", "pasted", "/file", "/format"),
            "Destination": where,
        }
        named["Answers"] = tuple(f"/{name}" for name in HINTS)
        return [(title, [self[name] for name in names]) for title, names in named.items()]

    def order(self) -> dict[str, Any]:
        """What was sent, as programs write it. Raises Invalid for what is no text and no pair."""
        found = self.cleaned_data
        texts = _texts(found["/files"])
        if found["pasted"]:
            texts[PASTED] = found["pasted"].replace("\r\n", "\n")
        order = {word: found[f"/{word}"] for word in ("file", "format", "fleets", "account", "region", "prefix")}
        order |= {name: _pairs(found[f"/{name}"], f"/{name}") for name in MAPS}
        order["file"] = order["file"] or (PASTED if found["pasted"] else "")
        return {"files": texts} | {word: value for word, value in order.items() if value}

    def without_secrets(self) -> None:
        """Nothing secret that was sent is written into the page; pasted text only for who must send it again."""
        if self.is_bound:
            data: Any = cast("QueryDict", self.data).copy()
            for name in SECRET if self.errors else (*SECRET, "pasted"):
                data[name] = ""
            self.data = data


def _texts(files: Sequence[UploadedFile[Any]]) -> dict[str, str]:
    """Names and texts. Raises Invalid."""
    if sum(file.size or 0 for file in files) > MOST_BYTES:
        detail = f"Send at most {MOST_BYTES // 2**20} MiB in all files together. {BY_COMMAND}"
        raise Invalid([FieldError("/files", "too_large", detail)])
    found, field_errors = {}, []
    for file in files:
        name = str(file.name)
        if name in found:
            detail = f"Two files are called {name[:80]}; give them different names."
            field_errors.append(FieldError("/files", "duplicate", detail))
        content = file.read()
        try:
            found[name] = content.decode()
        except UnicodeDecodeError:
            what = AS_DUMP if content.startswith(MAGIC) else "is no text file; leave it out."
            field_errors.append(FieldError("/files", "binary", f"{name[:80]} {what}"))
    if field_errors:
        raise Invalid(field_errors)
    return found


def _pairs(text: str, pointer: str) -> dict[str, str]:
    """Lines of `old=new`, which an error never quotes: they may be passwords. Raises Invalid."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        old, mark, new = (part.strip() for part in line.partition("="))
        if line.strip() and not (old and mark):
            raise Invalid([FieldError(pointer, "pair", f"Line {number} is no pair; write old=new.")])
        if old:
            found[old] = new
    return found


@dataclass(frozen=True, slots=True)
class Group:
    """The lines of one verdict, the first of them; `more` are left out."""

    verdict: Verdict
    count: int
    lines: tuple[LineReport, ...]

    @property
    def state(self) -> str:
        """The state component's word."""
        return VERDICTS[self.verdict][0]

    @property
    def title(self) -> str:
        """What people call the verdict."""
        return VERDICTS[self.verdict][1]

    @property
    def meaning(self) -> str:
        """The verdict in a sentence."""
        return VERDICTS[self.verdict][2]

    @property
    def more(self) -> int:
        """How many lines are not shown."""
        return self.count - len(self.lines)

    @property
    def is_open(self) -> bool:
        """Warnings are open, the rest folded."""
        return self.verdict in WARNINGS


@page
def index(request: PageRequest) -> HttpResponse:
    """The form; sent, the report and the plan above it."""
    operators_only(request.actor, "import")
    request.actor.may_write()
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = ImportForm(*sent, request=request)
    context: dict[str, Any] = {"form": form}
    status = 200
    if form.is_bound:
        try:
            context |= _report(request, form)
        except Invalid as error:
            attach_errors(form, _beside_fields(error, pasted=bool(form.data.get("pasted"))))
        except SpillwayError as error:
            form.add_error(None, error.detail)
            status = error.status
        form.without_secrets()
        status = 422 if form.errors and status == 200 else status
    return show_once(request, "pages/load_balancers/import.html", context, status)


def _report(request: PageRequest, form: ImportForm) -> dict[str, Any]:
    if not form.is_valid():
        return {}
    order = read_order(form.order())
    made = plan_import(actor=request.actor, order=order)
    return {"made": made, "order": order, "groups": list(_groups(made)), **_plan(made)}


def _groups(made: PlannedImport) -> Iterator[Group]:
    counts = Counter(line.verdict for line in made.found.report)
    for verdict in VERDICTS:
        lines = (line for line in made.found.report if line.verdict is verdict)
        yield Group(verdict, counts[verdict], tuple(islice(lines, LINES_SHOWN)))


def _plan(made: PlannedImport) -> dict[str, Any]:
    """The plan's counts and the fields of each object that would change."""
    if made.plan is None:
        return {}
    changes = [each for each in made.plan.summary["changes"] if each["action"] != "unchanged"]
    shown = [each | {"lines": differences.of_json(*_sides(each))} for each in changes[:OBJECTS_SHOWN]]
    return {"changes": shown, "changed": len(changes), "more": len(changes) - len(shown)}


def _sides(change: dict[str, Any]) -> tuple[Any, Any]:
    """Both sides of a change as JSON: the fields that differ, by their pointers."""
    before = {field["path"]: field["before"] for field in change["fields"] if field["before"] is not None}
    after = {field["path"]: field["after"] for field in change["fields"] if field["after"] is not None}
    return before or None, after or None


def _beside_fields(error: Invalid, *, pasted: bool) -> Invalid:
    """What is wrong with a text stands beside the field that it came from; none is said in the page's own words."""
    came_from = "pasted" if pasted else "/files"

    def moved(each: FieldError) -> FieldError:
        if (each.pointer, each.code) == ("/files", "missing"):
            return replace(each, detail="Choose the files, or paste the configuration.")
        of_text = each.pointer == "/file" and each.code not in ("missing", "unknown")
        missing = pasted and each.pointer.startswith(f"/files/{PASTED}")
        return replace(each, pointer=came_from) if of_text or missing else each

    return Invalid(map(moved, error.field_errors))


@post_page
def apply(request: PageRequest, plan: str) -> HttpResponse:
    """Do exactly what the plan says; it says so itself where that is not possible any more."""
    operators_only(request.actor, "import")
    with telling(request):
        apply_plan(actor=request.actor, plan_id=plan, reason="Import of a configuration")
        say_done(request, "The import is applied. The nodes follow in a moment.")
        return redirect("web:load-balancers")
    return redirect("web:import")
