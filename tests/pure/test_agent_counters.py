"""What HAProxy prints becomes rows of our objects, without what we asked ourselves."""

from __future__ import annotations

from typing import Any

from apps.agent.process import counters

PRINTED = """Pid: 7
Start_time_sec: 100
# pxname,svname,req_tot,stot,hrsp_2xx,hrsp_4xx,scur,status,dcon,dses,act,bck
lst-1,FRONTEND,50,50,45,5,2,OPEN,,,,
lst-2,FRONTEND,0,0,0,0,0,OPEN,3,4,,
pool-1,BACKEND,30,30,30,0,1,UP,,,2,0
pool-2,BACKEND,0,0,0,0,0,UP,,,0,0
# table: st_latency, type: string, size:102400, used:1
0x1: key=pool-1/100 use=0 exp=0 shard=0 gpc0=30
# table: st_routes, type: string, size:204800, used:2
0x2: key=route-3 use=0 exp=0 shard=0 http_req_cnt=30 http_err_cnt=0 http_fail_cnt=1
0x3: key=lst-1 use=0 exp=0 shard=0 http_req_cnt=15 http_err_cnt=0 http_fail_cnt=0
"""


def rows() -> dict[str, dict[str, Any]]:
    reading = counters.read(PRINTED)
    counters.take_off_probes(reading["rows"], reading["probes"])
    return {row["object_id"]: row for row in reading["rows"] if row["kind"] != "rejected"}


def test_connections_that_a_listener_closed_at_once_have_a_row_of_their_own() -> None:
    reading = counters.read(PRINTED)
    found = {row["object_id"]: row["connections"] for row in reading["rows"] if row["kind"] == "rejected"}
    assert found == {"lst-2": 7}


def test_idle_time_and_connections_are_told_as_shares_and_left_out_where_haproxy_does_not_say() -> None:
    info = {"Idle_pct": "75", "CurrConns": "10", "Maxconn": "4000"}
    assert counters.in_use(info) == {"cpu": 0.25, "connections": 0.0025}
    assert counters.in_use({"Maxconn": "0"}) == {}


def test_our_own_probes_are_no_traffic_of_a_listener() -> None:
    found = rows()["lst-1"]
    assert [found[each] for each in ("connections", "requests", "status_2xx", "status_4xx")] == [35, 35, 30, 5]


def test_probes_are_no_route_and_backends_keep_their_numbers() -> None:
    found = rows()
    assert set(found) == {"lst-1", "lst-2", "pool-1", "pool-2", "route-3"}
    assert found["lst-1"]["kind"] == "frontend"
    assert (found["route-3"]["requests"], found["route-3"]["errors"]) == (30, 1)
    assert found["pool-1"]["requests"] == 30


def test_a_backend_without_any_server_is_down_whatever_haproxy_calls_it() -> None:
    found = rows()
    assert (found["pool-1"]["status"], found["pool-2"]["status"]) == ("UP", "DOWN")
