"""The observed: a server that behaves like the tutorial's virtual machine.

Google's capacity tutorial measures an `n1-standard-1` that needs 384 ms of CPU for a request and gives in at about
5 requests/s. Two *lanes* (hyper-threads) that each work 384 ms on one request at a time, first come first served, are
that machine: 5.2 requests/s, 384 ms on average up to there, and a queue that grows without end above. The work is a
sleep, not a burn: it is as exclusive as the real thing and lets a laptop hold a hundred of them.

    python -m deploy.demo.backend --port 9101 --name us-vm-1 --region us-central1
    curl -i http://127.0.0.1:9101/anything
    curl -X PUT http://127.0.0.1:9101/control -d '{"mode": "failing"}'     # ok, slow, failing, down
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from dataclasses import dataclass

from deploy.demo.http1 import Request, Response, listen

MODES = ("ok", "slow", "failing", "down")
SLOWNESS = 10


@dataclass
class Machine:
    """One virtual machine: its lanes, its mode, what it has served since the start."""

    name: str
    region: str
    service_ms: float
    lanes: int
    mode: str = "ok"
    served: int = 0
    waiting: int = 0

    def __post_init__(self) -> None:
        # asyncio's semaphore wakes waiters in the order in which they came: a queue.
        self._lane = asyncio.Semaphore(self.lanes)

    async def answer(self, request: Request) -> Response:
        """Control and health at once, everything else after its turn in a lane."""
        path = request.path.partition("?")[0]
        if path == "/control":
            return self._control(request)
        if self.mode == "down":
            return Response(close=True)
        if path == "/healthz":
            return Response(500 if self.mode == "failing" else 200, f"{self.mode}\n".encode())
        await self._work()
        if self.mode == "failing":
            return Response(500, b"This server was told to fail.\n", self._headers())
        body = f"{self.name} in {self.region} answered {request.method} {request.path}\n"
        return Response(200, body.encode("latin-1"), self._headers())

    async def _work(self) -> None:
        """One request's exclusive work, done even when the client has gone: a real machine would not notice either."""
        self.waiting += 1
        async with self._lane:
            self.waiting -= 1
            if self.service_ms:
                await asyncio.sleep(self.service_ms / 1000 * (SLOWNESS if self.mode == "slow" else 1))
        self.served += 1

    def _headers(self) -> dict[str, str]:
        return {"content-type": "text/plain", "x-served-by": self.name, "x-served-in": self.region}

    def _control(self, request: Request) -> Response:
        """Read or set how the machine behaves; refused for requests that came through a balancer."""
        if "x-forwarded-for" in request.headers:
            return Response(403, b"Control this server directly, not through the balancer.\n")
        if request.method == "PUT":
            try:
                self._set(json.loads(request.body))
            except (ValueError, TypeError) as error:
                return Response(400, f"{error}\n".encode())
        state = {"mode": self.mode, "service_ms": self.service_ms, "served": self.served, "waiting": self.waiting}
        return Response.of_json({"name": self.name, "region": self.region, **state})

    def _set(self, wanted: object) -> None:
        if not isinstance(wanted, dict) or set(wanted) - {"mode", "service_ms"}:
            raise ValueError("Send {'mode': …, 'service_ms': …}, either or both.")
        mode, service_ms = wanted.get("mode", self.mode), wanted.get("service_ms", self.service_ms)
        if mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}.")
        if not isinstance(service_ms, (int, float)) or not 0 <= service_ms <= 60_000:
            raise ValueError("service_ms is a number from 0 to 60000.")
        self.mode, self.service_ms = mode, service_ms


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9101, help="port on 127.0.0.1; 0 lets the kernel choose")
    parser.add_argument("--name", default="vm-1", help="shown in the answer and in x-served-by")
    parser.add_argument("--region", default="nowhere", help="shown in the answer and in x-served-in")
    parser.add_argument("--service-ms", type=float, default=384, help="exclusive work per request; 0 for none")
    parser.add_argument("--lanes", type=int, default=2, help="requests worked on at the same time")
    return parser.parse_args()


async def main() -> None:
    """Serve until told to stop."""
    options = arguments()
    machine = Machine(options.name, options.region, options.service_ms, options.lanes)
    server = await listen(machine.answer, options.port)
    port = server.sockets[0].getsockname()[1]
    print(f"{machine.name} serves http://127.0.0.1:{port}", flush=True)
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
