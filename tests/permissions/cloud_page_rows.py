"""The table, pages of clouds and static IPs: operators alone have them."""

from __future__ import annotations

from tests.permissions.page_rows import LIST, OPERATE, OPERATED, sent, shown
from tests.permissions.rows import Row, codes

SEE = codes(404, 404, 200)
FAULTY = codes(404, 404, "403 422 422")
GONE = codes(404, 404, 404)
SENT_GONE = codes(404, 404, "403 404 404")
OF_STACK, OF_ACCOUNT = {"pk": "$stack"}, {"pk": "$cloudaccount"}
OF_AUTHORITY = {"pk": "$certificateauthority"}
OF_POOL, OF_ADDRESS, OF_RUN = {"pk": "$addresspool"}, {"pk": "$staticip"}, {"pk": "987654321"}

CLOUD_PAGES: tuple[Row, ...] = (
    *shown("stacks", SEE, ""),
    Row("web:stack-new", "GET", OPERATE),
    sent("stack-new", FAULTY, form={"/name": ""}),
    *shown("stack", SEE, "", OF_STACK),
    Row("web:stack-edit", "GET", OPERATE, OF_STACK),
    sent("stack-edit", FAULTY, path=OF_STACK, form={"/spec/cloud_region": ""}),
    sent("stack-plan", OPERATED, path=OF_STACK),
    sent("stack-check", OPERATED, path=OF_STACK),
    sent("stack-destroy", OPERATED, path=OF_STACK, confirm="something else"),
    sent("stack-delete", OPERATED, path=OF_STACK, confirm="something else"),
    sent("stack-unlock", OPERATED, path=OF_STACK, lock="none", reason="Nobody."),
    *shown("stack-revision", SEE, "", OF_STACK | {"number": "1"}),
    *shown("stack-state", SENT_GONE, "", OF_STACK | {"number": "1"}),
    *shown("stack-run", GONE, "", OF_RUN),
    *(sent(f"stack-run-{word}", SENT_GONE, path=OF_RUN) for word in ("approve", "discard", "cancel", "retry")),
    *shown("cloud-accounts", SEE, ""),
    Row("web:cloud-account-new", "GET", OPERATE),
    sent("cloud-account-new", FAULTY, form={"/name": ""}),
    Row("web:cloud-account-edit", "GET", OPERATE, OF_ACCOUNT),
    sent("cloud-account-edit", FAULTY, path=OF_ACCOUNT, form={"/spec/cloud": ""}),
    sent("cloud-account-delete", OPERATED, path=OF_ACCOUNT),
    sent("cloud-account-test", OPERATED, path=OF_ACCOUNT),
    *shown("adopt", SEE, ""),
    Row("web:import", "GET", OPERATE),
    sent("import", FAULTY, form={"/prefix": "???"}),
    sent("import-apply", SENT_GONE, path={"plan": "0" * 32}),
    *shown("export", SEE, "", {"pk": "$loadbalancer"}),
    *shown("portability", LIST, "", {"pk": "$loadbalancer"}),
    Row("web:static-ip-new", "GET", OPERATE),
    sent("static-ip-new", FAULTY, form={"/name": ""}),
    *shown("static-ip", SEE, "", OF_ADDRESS),
    Row("web:static-ip-edit", "GET", OPERATE, OF_ADDRESS),
    sent("static-ip-edit", FAULTY, path=OF_ADDRESS, form={"/spec/kind": ""}),
    sent("static-ip-move", OPERATED, path=OF_ADDRESS, load_balancer="none"),
    sent("static-ip-release", OPERATED, path=OF_ADDRESS),
    sent("static-ip-delete", OPERATED, path=OF_ADDRESS, confirm="something else"),
    Row("web:certificate-authority-new", "GET", OPERATE),
    sent("certificate-authority-new", FAULTY, form={"/name": ""}),
    Row("web:certificate-authority-edit", "GET", OPERATE, OF_AUTHORITY),
    sent("certificate-authority-edit", FAULTY, path=OF_AUTHORITY, form={"/spec/directory_url": ""}),
    sent("certificate-authority-delete", OPERATED, path=OF_AUTHORITY, confirm="something else"),
    Row("web:address-pool-new", "GET", OPERATE),
    sent("address-pool-new", FAULTY, form={"/name": ""}),
    Row("web:address-pool-edit", "GET", OPERATE, OF_POOL),
    sent("address-pool-edit", FAULTY, path=OF_POOL, form={"/spec/blocks": ""}),
    sent("address-pool-delete", OPERATED, path=OF_POOL),
)
