"""The table, pages of DNS zones: operators keep them, the own account keeps a record in one that is shared with it."""

from __future__ import annotations

from tests.permissions.page_rows import (
    EDIT,
    EDIT_FAULTY,
    LIST,
    OPERATE,
    OPERATED,
    READ_OWN,
    SENT,
    SENT_BY_ROLE,
    sent,
    shown,
)
from tests.permissions.rows import Row, codes

OF_ZONE, OF_RECORD = {"pk": "$zone"}, {"pk": "$record"}
OPERATE_FAULTY = codes(404, 404, "403 422 422")
ASKED = codes(404, 404, 200)

ZONE_PAGES: tuple[Row, ...] = (
    *shown("zones", LIST, "all"),
    Row("web:zone-new", "GET", OPERATE),
    sent("zone-new", OPERATE_FAULTY, form={"/name": "", "/spec/driver": "rfc2136"}),
    *shown("zone", READ_OWN, "zone", OF_ZONE),
    Row("web:zone-edit", "GET", OPERATE, OF_ZONE),
    sent("zone-edit", OPERATE_FAULTY, path=OF_ZONE, form={"/spec/domain": "", "/spec/driver": "rfc2136"}),
    *shown("zone-difference", ASKED, "", OF_ZONE),
    sent("zone-test", OPERATED, path=OF_ZONE),
    sent("zone-repair", SENT_BY_ROLE, "zone", OF_ZONE),
    sent("zone-delete", OPERATED, path=OF_ZONE, confirm="something else"),
    Row("web:record-new", "GET", EDIT, OF_ZONE, "zone"),
    sent("record-new", EDIT_FAULTY, "zone", OF_ZONE, form={"/spec/label": "", "/spec/type": "A"}),
    Row("web:record-edit", "GET", EDIT, OF_RECORD, "record"),
    sent("record-edit", EDIT_FAULTY, "record", OF_RECORD, form={"/spec/label": "", "/spec/type": "A"}),
    sent("record-delete", SENT, "record", OF_RECORD),
)
