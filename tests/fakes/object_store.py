"""An S3-compatible server on the loopback address, moto's, with one bucket.

It answers one request at a time, so that a conditional write is atomic, as on S3.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "fleet"
# A thread for each connection, since clients keep some open without a request.
_SERVER = f"""
import logging
import threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

logging.getLogger("werkzeug").disabled = True
s3_backends["123456789012"]["aws"].create_bucket({BUCKET!r}, "us-east-1")
application, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()

def answer(environ, start_response):
    with turn:
        return list(application(environ, start_response))

server = make_server("127.0.0.1", 0, answer, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def served(*, is_open: bool = True) -> Iterator[dict[str, str]]:
    """Yield the environment in which ``s3://fleet`` is the bucket of a new server.

    Args:
        is_open: Whether it takes any credentials, instead of rejecting all.
    """
    words = [sys.executable, "-c", _SERVER]
    settings = {} if is_open else {"INITIAL_NO_AUTH_ACTION_COUNT": "0"}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings}
    ) as server:
        try:
            assert server.stdout is not None
            yield {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(server.stdout.readline())}",
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "anyone",
                "AWS_SECRET_ACCESS_KEY": "anything",
            }
        finally:
            server.kill()
