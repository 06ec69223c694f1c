"""The table, forms of load balancers, fleets and nodes: operators alone have them."""

from __future__ import annotations

from tests.permissions.page_rows import OPERATE, OPERATED, sent, shown
from tests.permissions.rows import Row, codes

FAULTY = codes(404, 404, "403 422 422")
OF_BALANCER, OF_FLEET, OF_NODE = {"pk": "$loadbalancer"}, {"pk": "$fleet"}, {"pk": "$node"}
OF_REGION = {"pk": "$region"}
OF_LISTENER = OF_BALANCER | {"listener": "$listener"}

FLEET_PAGES: tuple[Row, ...] = (
    Row("web:load-balancer-new", "GET", OPERATE),
    sent("load-balancer-new", FAULTY, form={"/name": ""}),
    Row("web:load-balancer-edit", "GET", OPERATE, OF_BALANCER),
    sent("load-balancer-edit", FAULTY, path=OF_BALANCER, form={"/spec/fleets": "nobody's"}),
    sent("load-balancer-delete", OPERATED, path=OF_BALANCER, confirm="something else"),
    Row("web:listener-new", "GET", OPERATE, OF_BALANCER),
    sent("listener-new", FAULTY, path=OF_BALANCER, form={"/spec/listeners/1/port": "0"}),
    Row("web:listener-edit", "GET", OPERATE, OF_LISTENER),
    sent("listener-edit", FAULTY, path=OF_LISTENER, form={"/spec/listeners/0/port": "0"}),
    sent("listener-delete", OPERATED, path=OF_LISTENER, confirm="something else"),
    Row("web:region-new", "GET", OPERATE),
    sent("region-new", FAULTY, form={"/name": ""}),
    Row("web:region-edit", "GET", OPERATE, OF_REGION),
    sent("region-edit", FAULTY, path=OF_REGION, form={"/spec/title": ""}),
    sent("region-delete", OPERATED, path=OF_REGION, confirm="something else"),
    Row("web:fleet-new", "GET", OPERATE),
    sent("fleet-new", FAULTY, form={"/name": ""}),
    Row("web:fleet-edit", "GET", OPERATE, OF_FLEET),
    sent("fleet-edit", FAULTY, path=OF_FLEET, form={"/spec/region": ""}),
    sent("fleet-delete", OPERATED, path=OF_FLEET, confirm="something else"),
    Row("web:node-new", "GET", OPERATE),
    sent("node-new", FAULTY, form={"/name": ""}),
    *shown("enrolment", codes(404, 404, 200), ""),
    Row("web:node-enrol", "GET", OPERATE),
    sent("node-enrol", FAULTY, form={"/node": ""}),
    sent("enrolment-withdraw", codes(404, 404, "403 404 404"), path={"pk": "77"}),
    sent("authority-rotate", OPERATED),
    sent("authority-retire", codes(404, 404, "403 404 404"), path={"pk": "77"}),
    sent("node-revoke", OPERATED, path=OF_NODE, confirm="something else"),
    Row("web:node-edit", "GET", OPERATE, OF_NODE),
    sent("node-edit", FAULTY, path=OF_NODE, form={"/spec/url": ""}),
    sent("node-delete", OPERATED, path=OF_NODE, confirm="something else"),
)
