"""One page on this machine alone: a server of the standard library in threads of its own."""

from __future__ import annotations

import errno
import sys
from base64 import b64encode
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from dynident.core.errors import InputError
from dynident.core.templates import load_templates
from dynident.live.board import LiveBoard

LOOPBACK = "127.0.0.1"
OWN_NAMES = (LOOPBACK, "localhost")
"""Hosts that a request may name: a page of another site that has its name lead here has its own."""
PATIENCE = 30.0
"""After which a connection that says nothing is closed [s]."""
PAUSE = 0.05
"""Between two looks whether there is nothing to be served any more [s]."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer: no other site gets it, and nothing keeps it."""


class PageServer:
    """A page about a board, until it is closed.

    Parameters
    ----------
    port : int
        0 for any that is free.

    Raises
    ------
    InputError
        When the port cannot be had.
    """

    def __init__(self, board: LiveBoard, port: int) -> None:
        handler = type("BoardRequest", (PageRequest,), {"board": board})
        try:
            self._server = Server((LOOPBACK, port), handler)
        except OSError as error:
            used = error.errno == errno.EADDRINUSE
            why = "is in use" if used else f"cannot be had ({error.strerror})"
            raise InputError(f"--live: port {port} {why}; give another, or 0 for any") from error
        except OverflowError as error:
            raise InputError(f"--live: {port} is not a port: they go up to 65535") from error
        self.address = f"http://{LOOPBACK}:{self._server.server_address[1]}/"
        self._thread = Thread(target=self._server.serve_forever, args=(PAUSE,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve nothing any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Server(ThreadingMixIn, TCPServer):
    """A thread a connection; `http.server` would ask the network for the machine's name."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who leaves in the middle of an answer is not an error of the run."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class PageRequest(BaseHTTPRequestHandler):
    """Answers to GET alone, of the page and of its data."""

    board: ClassVar[LiveBoard]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dynident", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """The page, what is new, or a refusal."""
        host = self.headers.get("Host", "").lower().partition(":")[0]
        if host not in OWN_NAMES:
            self.send_error(HTTPStatus.FORBIDDEN, "This page is served to this machine only")
            return
        place = urlsplit(self.path)
        if place.path == "/":
            self._answer("text/html", render_live_page(self.board))
        elif place.path == "/data":
            after = parse_qs(place.query).get("after", ["0"])[0]
            seen = int(after) if after.isdecimal() and len(after) < 16 else 0
            self._answer("application/json", self.board.read(seen))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer(self, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        """What is the same of every answer."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", build_policy())
        super().end_headers()

    def log_message(self, *words: object) -> None:
        """Say nothing: stderr is of the run."""


@cache
def load_parts() -> tuple[str, str]:
    """Style and script of the page."""
    templates = load_templates("dynident.live", "dynident.plots")
    style, script = (
        "".join(templates.get_template(name).render() for name in names)
        for names in (("style.css.j2", "live.css"), ("chart.js", "live.js"))
    )
    return style, script


@cache
def build_policy() -> str:
    """Which style and which script may run: the page's own, and nothing from elsewhere."""
    style, script = (
        f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in load_parts()
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def render_live_page(board: LiveBoard) -> str:
    """The page, with what there is so far."""
    style, script = load_parts()
    template = load_templates("dynident.live", "dynident.plots").get_template("page.html.j2")
    first = board.read().replace("<", "\\u003c")
    return template.render(title=board.title, style=style, script=script, first=first)
