"""A flow as the geometry of a drawing: who wants traffic, who serves it, what crosses over.

Regions stand in rows: client traffic on the left, the region that serves it on the right, bands between them as thick
as the traffic. A region's own traffic lies on top on both sides, so its band is straight; what is over leaves below it.
All coordinates are texts in user units of the view box, so that templates print them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.overflow.flows import Flow, Lane, RegionUse
from apps.web.kit.figures import rate
from apps.web.overflow.words import flow_sentence, lane_title, use_kind, use_note

BAR = 8.0  # width of the posts at which bands end
THINNEST = 1.5  # what little flows must still be seen
GAP = 22.0
Points = dict[str, tuple[float, float]]
CHARACTER = 6.4  # mean width of a character of a label
# Where on its band a label may stand; in the narrow drawing the middle belongs to the texts of the next row.
PARTS = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)
NARROW_PARTS = (0.26, 0.34, 0.2, 0.74, 0.66, 0.5)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `kind` is its class."""

    id: str
    x: str
    y: str
    width: str
    height: str
    kind: str


@dataclass(frozen=True, slots=True)
class Band:
    """Traffic from a post to another; `title` says it in words."""

    id: str
    path: str
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; `anchor` is start, middle or end."""

    id: str
    x: str
    y: str
    anchor: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A text on a band with the pill behind it."""

    pill: Box
    text: Text


@dataclass(frozen=True, slots=True)
class Shape:
    """The drawing for one width of the page: wide, medium or narrow."""

    kind: str
    id: str
    view_box: str
    bands: tuple[Band, ...]
    boxes: tuple[Box, ...]
    texts: tuple[Text, ...]
    labels: tuple[Label, ...]
    crosses: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A flow in three widths, the page shows the one that fits; `sentence` says it to those who listen."""

    shapes: tuple[Shape, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where things stand: bands run from `left` to `right`, texts end at `before` and begin at `after`."""

    kind: str
    width: float
    left: float
    right: float
    before: float
    after: float
    bar: float
    bar_width: float
    letters: int
    head: float
    least: float


# In the narrow one each row has its texts above the bands, in the others beside them.
SHEETS = (
    Sheet("wide", 1120, 212, 736, 198, 760, 976, 140, 26, 0, 58),
    Sheet("medium", 680, 132, 404, 120, 424, 424, 200, 16, 0, 66),
    Sheet("narrow", 340, 0, 332, 0, 340, 190, 150, 24, 44, 0),
)


@dataclass(slots=True)
class _Row:
    """A region with the pieces that stand at its posts, from the top down: (key, requests/s)."""

    use: RegionUse
    leaving: list[tuple[str, float]]
    arriving: list[tuple[str, float]]
    top: float = 0.0
    height: float = 0.0

    @property
    def most(self) -> float:
        """The thicker of the two sides."""
        return max(sum(amount for _, amount in self.leaving), sum(amount for _, amount in self.arriving))


def draw(flow: Flow, prefix: str) -> Drawing:
    """The geometry of a flow; `prefix` keeps the ids of several drawings on a page apart."""
    shapes = tuple(_shape(flow, sheet, f"{prefix}-{sheet.kind}") for sheet in SHEETS)
    return Drawing(shapes, flow_sentence(flow))


def _crossing(flow: Flow) -> list[Lane]:
    return [lane for lane in flow.lanes if lane.source_id != lane.target_id and lane.rps > 0]


def _rows(flow: Flow) -> list[_Row]:
    order = {use.region_id: at for at, use in enumerate(flow.regions)}
    crossing = [lane for lane in _crossing(flow) if lane.source_id in order and lane.target_id in order]
    rows = []
    for use in flow.regions:
        own = [(f"own-{use.region_id}", use.local_rps)]
        out = sorted((lane for lane in crossing if lane.source_id == use.region_id), key=lambda x: order[x.target_id])
        guests = sorted(
            (lane for lane in crossing if lane.target_id == use.region_id), key=lambda x: order[x.source_id]
        )
        leaving = own + [(_key(lane), lane.rps) for lane in out] + [(f"refused-{use.region_id}", use.rejected_rps)]
        rows.append(_Row(use, leaving, own + [(_key(lane), lane.rps) for lane in guests]))
    return rows


def _key(lane: Lane) -> str:
    return f"lane-{lane.source_id}-{lane.target_id}"


def _shape(flow: Flow, sheet: Sheet, prefix: str) -> Shape:
    rows = _rows(flow)
    scale, height = _lay_out(rows, sheet)
    starts: Points = {}
    ends: Points = {}
    for row in rows:
        starts |= _stack(row, row.leaving, sheet, scale)
        ends |= _stack(row, row.arriving, sheet, scale)
    lanes = _crossing(flow)
    return Shape(
        kind=sheet.kind,
        id=prefix,
        view_box=f"0 0 {sheet.width:g} {_n(height)}",
        bands=tuple(_bands(rows, lanes, sheet, prefix, starts, ends)),
        boxes=tuple(box for row in rows for box in _boxes(row, sheet, prefix, scale)),
        texts=tuple(text for row in rows for text in _texts(row, sheet, prefix, starts)),
        labels=tuple(_labels(lanes, sheet, prefix, starts, ends)),
        crosses=tuple(_crosses(rows, sheet, prefix, starts)),
    )


def nice(amount: float) -> float:
    """The next of ten steps per power of ten: the scale stays the same while traffic wavers."""
    if amount <= 0:
        return 1.0
    power = 1.0
    while power > amount:
        power /= 10
    while power * 10 <= amount:
        power *= 10
    steps = (1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10)
    return next(step * power for step in steps if step * power >= amount * 0.999999)


def _lay_out(rows: Sequence[_Row], sheet: Sheet) -> tuple[float, float]:
    """Position every row; returns the scale (units per request/s) and the height, which traffic does not move."""
    room = min(340.0, 80.0 + 45.0 * len(rows))
    scale = room / nice(sum(row.most for row in rows))
    pad = GAP + sheet.head
    heights = [max(sheet.least, _tall(row, scale) + pad) for row in rows]
    least = max(sheet.least, pad)
    whole = max(sum(heights), room + pad + least * (len(rows) - 1))
    spare = (whole - sum(heights)) / max(1, len(rows))
    top = 0.0
    for row, height in zip(rows, heights, strict=True):
        row.top, row.height = top, height + spare
        top += row.height
    return scale, max(whole, 40.0)


def _thick(amount: float, scale: float) -> float:
    return max(THINNEST, amount * scale) if amount > 0 else 0.0


def _tall(row: _Row, scale: float) -> float:
    sides = (row.leaving, row.arriving)
    return max(8.0, *(sum(_thick(amount, scale) for _, amount in side) for side in sides))


def _begin(row: _Row, sheet: Sheet, scale: float) -> float:
    """Where the bands of a row begin: below its texts, or in the middle beside them."""
    if sheet.head:
        return row.top + sheet.head
    return row.top + (row.height - _tall(row, scale)) / 2


def _stack(row: _Row, pieces: list[tuple[str, float]], sheet: Sheet, scale: float) -> dict[str, tuple[float, float]]:
    """Top and thickness of each piece at a post."""
    found, y = {}, _begin(row, sheet, scale)
    for key, amount in pieces:
        thick = _thick(amount, scale)
        found[key] = (y, thick)
        y += thick
    return found


def _bands(
    rows: Sequence[_Row], lanes: Sequence[Lane], sheet: Sheet, prefix: str, starts: Points, ends: Points
) -> list[Band]:
    found = []
    for row in rows:
        key = f"own-{row.use.region_id}"
        y, thick = starts[key]
        if thick:
            title = f"{rate(row.use.local_rps)}/s of {row.use.name} stay there"
            found.append(Band(f"{prefix}-{key}", _ribbon(sheet, y, y, thick), "own", title))
    for lane in lanes:
        key = _key(lane)
        if key in starts and key in ends:
            (y, thick), (to, _) = starts[key], ends[key]
            found.append(Band(f"{prefix}-{key}", _ribbon(sheet, y, to, thick), "guest", lane_title(lane)))
    for row in rows:
        key = f"refused-{row.use.region_id}"
        y, thick = starts[key]
        if thick:
            title = f"{rate(row.use.rejected_rps)}/s of {row.use.name} are rejected"
            path = _straight(sheet.left + BAR, y, _stub(sheet), thick)
            found.append(Band(f"{prefix}-{key}", path, "refused", title))
    return found


def _stub(sheet: Sheet) -> float:
    """Length of a band that leads nowhere."""
    return (sheet.right - sheet.left) / 6


def _ribbon(sheet: Sheet, y: float, to: float, thick: float) -> str:
    x, end = sheet.left + BAR, sheet.right
    mid = (x + end) / 2
    down = f"C{_n(mid)} {_n(y)} {_n(mid)} {_n(to)} {_n(end)} {_n(to)}"
    back = f"C{_n(mid)} {_n(to + thick)} {_n(mid)} {_n(y + thick)} {_n(x)} {_n(y + thick)}"
    return f"M{_n(x)} {_n(y)}{down}V{_n(to + thick)}{back}Z"


def _straight(x: float, y: float, length: float, thick: float) -> str:
    return f"M{_n(x)} {_n(y)}H{_n(x + length)}V{_n(y + thick)}H{_n(x)}Z"


def _boxes(row: _Row, sheet: Sheet, prefix: str, scale: float) -> list[Box]:
    """The two posts, and the use of the limit: own part, guests, and where the limit is."""
    name, use, y = row.use.region_id, row.use, _begin(row, sheet, scale)
    posts = [
        Box(f"{prefix}-{side}-{name}", _n(x), _n(y), _n(BAR), _n(max(8.0, tall)), "post")
        for side, x, tall in (
            ("from", sheet.left, sum(_thick(amount, scale) for _, amount in row.leaving)),
            ("to", sheet.right, sum(_thick(amount, scale) for _, amount in row.arriving)),
        )
    ]
    return posts + _meter(row, use, sheet, prefix)


def _meter(row: _Row, use: RegionUse, sheet: Sheet, prefix: str) -> list[Box]:
    whole, own, guests = _meter_parts(use)
    if not whole:
        return []
    y = _meter_y(row, sheet)
    full = max(whole, own + guests)
    name, unit = use.region_id, sheet.bar_width / full
    boxes = [
        Box(f"{prefix}-track-{name}", _n(sheet.bar), _n(y), _n(sheet.bar_width), "6", "track"),
        Box(f"{prefix}-used-{name}", _n(sheet.bar), _n(y), _n(own * unit), "6", "used"),
        Box(f"{prefix}-guests-{name}", _n(sheet.bar + own * unit), _n(y), _n(guests * unit), "6", "guests"),
    ]
    if full > whole * 1.05:  # less is the window's wavering
        boxes.append(Box(f"{prefix}-mark-{name}", _n(sheet.bar + whole * unit - 1), _n(y - 3), "2", "12", "mark"))
    return boxes


def _meter_parts(use: RegionUse) -> tuple[float, float, float]:
    """Limit, own part and guests in one unit, of the fullest pool where there are several; zeros without a limit."""
    if use.fullest and use.usable:
        return _meter_parts(use.fullest.use)
    if not use.usable:
        return 0.0, 0.0, 0.0
    if use.capacity_rps:
        return use.capacity_rps, use.local_rps, use.overflow_in_rps
    if use.flight_limit and use.in_flight is not None:
        served = use.local_rps + use.overflow_in_rps
        guests = use.in_flight * use.overflow_in_rps / served if served else 0.0
        return float(use.flight_limit), use.in_flight - guests, guests
    return 0.0, 0.0, 0.0


def _meter_y(row: _Row, sheet: Sheet) -> float:
    if sheet.kind == "narrow":
        return row.top + 29
    middle = row.top + row.height / 2
    return middle - 3 if sheet.kind == "wide" else middle + 18


def _texts(row: _Row, sheet: Sheet, prefix: str, starts: Points) -> list[Text]:
    use, name = row.use, row.use.region_id
    title = use.name if len(use.name) <= sheet.letters else use.name[: sheet.letters - 1] + "…"
    wanted = f"{rate(use.demand_rps)}/s"
    said, kind = use_note(use), use_kind(use)
    if sheet.kind == "narrow":
        texts = [
            Text(f"{prefix}-name-{name}", "0", _n(row.top + 14), "start", "name", title),
            Text(f"{prefix}-wants-{name}", "0", _n(row.top + 34), "start", "note", f"{wanted} from clients"),
            Text(f"{prefix}-use-{name}", _n(sheet.after), _n(row.top + 14), "end", f"note {kind}", said),
        ]
    else:
        middle = row.top + row.height / 2
        up = middle - (12 if sheet.kind == "medium" else 3)
        texts = [
            Text(f"{prefix}-name-{name}", _n(sheet.before), _n(middle - 3), "end", "name", title),
            Text(f"{prefix}-wants-{name}", _n(sheet.before), _n(middle + 14), "end", "note", wanted),
            Text(f"{prefix}-serves-{name}", _n(sheet.after), _n(up), "start", "name", title),
            Text(f"{prefix}-use-{name}", _n(sheet.after), _n(up + 17), "start", f"note {kind}", said),
        ]
    if use.rejected_rps > 0:
        y, thick = starts[f"refused-{name}"]
        x = sheet.left + BAR + _stub(sheet) + 16
        said = f"{rate(use.rejected_rps)}/s refused"
        texts.append(Text(f"{prefix}-no-{name}", _n(x), _n(y + thick / 2 + 4), "start", "note bad", said))
    return texts


def _crosses(rows: Sequence[_Row], sheet: Sheet, prefix: str, starts: Points) -> list[Band]:
    """The sign at the end of every band of refused traffic."""
    found = []
    for row in rows:
        y, thick = starts[f"refused-{row.use.region_id}"]
        if thick:
            x, middle = sheet.left + BAR + _stub(sheet) + 6, y + thick / 2
            path = f"M{_n(x - 4)} {_n(middle - 4)}l8 8m-8 0l8 -8"
            found.append(Band(f"{prefix}-cross-{row.use.region_id}", path, "cross", ""))
    return found


def _labels(lanes: Sequence[Lane], sheet: Sheet, prefix: str, starts: Points, ends: Points) -> list[Label]:
    """A pill on every crossing band, moved along it until it covers no other one."""
    found: list[Label] = []
    taken: list[tuple[float, float, float]] = []
    for lane in lanes:
        key = _key(lane)
        if key not in starts or key not in ends:
            continue
        said = f"{rate(lane.rps)}/s" + (f" +{lane.added_ms:.0f} ms" if lane.added_ms is not None else "")
        half = len(said) * CHARACTER / 2 + 7
        x, y = _free_position(sheet, starts[key], ends[key], half, taken)
        taken.append((x, y, half))
        pill = Box(f"{prefix}-pill-{key}", _n(x - half), _n(y - 9), _n(2 * half), "18", "pill")
        found.append(Label(pill, Text(f"{prefix}-said-{key}", _n(x), _n(y + 4), "middle", "said", said)))
    return found


def _free_position(
    sheet: Sheet,
    start: tuple[float, float],
    end: tuple[float, float],
    half: float,
    taken: Sequence[tuple[float, float, float]],
) -> tuple[float, float]:
    thick = start[1] / 2
    parts = NARROW_PARTS if sheet.kind == "narrow" else PARTS
    first = _along(sheet, start[0] + thick, end[0] + thick, parts[0])
    for part in parts:
        x, y = _along(sheet, start[0] + thick, end[0] + thick, part)
        if all(abs(x - other) > half + wide or abs(y - row) > 20 for other, row, wide in taken):
            return x, y
    return first


def _along(sheet: Sheet, y: float, to: float, part: float) -> tuple[float, float]:
    """The point at `part` (0–1) of the curve."""
    x, end = sheet.left + BAR, sheet.right
    mid, rest = (x + end) / 2, 1 - part
    first, second, third, last = rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3
    return first * x + (second + third) * mid + last * end, (first + second) * y + (third + last) * to


def _n(value: float) -> str:
    """A coordinate with one decimal, without a sign for zero."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
