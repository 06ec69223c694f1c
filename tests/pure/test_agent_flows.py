"""What the agent reads of overflow from HAProxy's own words."""

from __future__ import annotations

from typing import Any

from apps.agent.process import counters

INFO = "Name: HAProxy\nPid: 7\nStart_time_sec: 100\n"
HEAD = "# pxname,svname,qcur,scur,stot,hrsp_2xx,hrsp_5xx,status,check_status,check_duration,last_chk,req_tot,"
STAT = f"""{HEAD}
pool-1,srv-1,0,1,10,10,0,UP,L7OK,3,ok,,
pool-1,BACKEND,0,1,10,10,0,UP,,,,10,
queue-1,srv-1,2,1,4,4,0,UP,,,,,
queue-1,BACKEND,2,1,4,3,1,UP,,,,4,
to-rgn-2,node-3,0,0,5,5,0,UP,L7OK,12,ok,,
to-rgn-2,node-4,0,0,5,5,0,UP,L7OK,9,ok,,
to-rgn-3,node-5,0,0,5,5,0,DOWN,L4CON,1,refused,,
to-rgn-2-rgn-3,node-3,0,0,5,5,0,UP,L7OK,1,ok,,
"""
TABLES = """# table: st_latency, type: string, size:102400, used:0
# table: st_routes, type: string, size:204800, used:2
0x1: key=overflow use=0 exp=0 http_req_cnt=40 http_err_cnt=0 http_fail_cnt=0
0x2: key=route-1 use=0 exp=0 http_req_cnt=9 http_err_cnt=0 http_fail_cnt=1
# table: st_flow, type: string, size:102400, used:1
0x3: key=pool-1/to/rgn-2/rate use=0 exp=0 gpc0=5
# table: st_limits, type: string, size:102400, used:2
0x4: key=pool-1/node-1 use=0 exp=9 gpt0=1 gpc0=70 gpc0_rate(10000)=33 conn_cur=0 gpc1=70 gpc1_rate(1000)=4
0x6: key=pool-1/node-3 use=0 exp=9 gpt0=1 gpc0=70 gpc0_rate(10000)=0 conn_cur=0 gpc1=70 gpc1_rate(1000)=0
0x5: key=pool-1/node-2/guest use=0 exp=9 gpt0=0 gpc0=7 gpc0_rate(10000)=2 conn_cur=0 gpc1=7 gpc1_rate(1000)=0
"""
# A server chooses the text of its check.
HOSTILE = "pool-1,srv-2,0,1,10,10,0,DOWN,L7STS,3,x id=node-9(remote state=EST,,\n"
PEERS = """0x6: [21/Nov/2026:07:11:32] id=everywhere disabled=0 flags=0x6811 resync_timeout=0s task_calls=25
  0x7: id=node-2(remote,active) addr=127.0.0.1:15002 last_status=ESTA last_hdshk=4s
        flags=0x20000200 appctx:0x561d7f9dd280 st0=7 st1=0 task_calls=49 state=EST
  0x8: id=node-3(remote,active) addr=127.0.0.1:15003 last_status=NONE last_hdshk=<NEVER>
  0x9: id=node-1(local,inactive) addr=127.0.0.1:15001 last_status=NONE last_hdshk=<NEVER>
"""


def reading() -> dict[str, Any]:
    """The sample as it goes to the collector."""
    return counters.read(INFO + STAT + HOSTILE + TABLES + PEERS)


def test_flows_are_rows_of_their_pool() -> None:
    (flow,) = [row for row in reading()["rows"] if row["kind"] == "flow"]
    assert (flow["object_id"], flow["parent_id"], flow["requests"]) == ("pool-1/to/rgn-2/rate", "pool-1", 5)


def test_what_each_node_admitted_is_told_by_key() -> None:
    assert reading()["admitted"] == {"pool-1/node-1": 33, "pool-1/node-2/guest": 2}


def test_peers_that_exchange_counters_are_told_from_those_that_do_not() -> None:
    found = reading()
    assert found["peers"] == {"node-2": True, "node-3": False}
    assert "srv-2" in {row["object_id"] for row in found["rows"]}


def test_the_nearest_node_says_how_far_a_region_is() -> None:
    assert reading()["distances_ms"] == {"rgn-2": 5}


def test_requests_that_waited_count_for_their_pool() -> None:
    (pool,) = [row for row in reading()["rows"] if row["object_id"] == "pool-1"]
    assert (pool["requests"], pool["queue_now"], pool["status_5xx"]) == (14, 2, 1)


def test_probes_of_the_overflow_listener_are_no_route() -> None:
    assert [row["object_id"] for row in reading()["rows"] if row["kind"] == "route"] == ["route-1"]
