"""A web server for tests that answers as told, in a thread of its own."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request gets."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Web:
    """A server that runs: its address, and the paths that it was asked for."""

    address: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def serve(answer: Callable[[str], Answer]) -> Iterator[Web]:
    """Serves `answer(path)` on a port of its own while the block lasts."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.asked.append(self.path)
            told = answer(self.path)
            self.send_response(told.status)
            for name, value in told.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(told.body)))
            # Who asked may have gone.
            with suppress(BrokenPipeError):
                self.end_headers()
                self.wfile.write(told.body)

        def log_message(self, *_args: object) -> None:
            """Quietly."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web = Web(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
