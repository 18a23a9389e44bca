"""A site that is served while a browser looks at it, and how well its text stands out."""

import socket
import threading
from contextlib import contextmanager

import pytest

from mispair.serving.app import make_app

uvicorn = pytest.importorskip("uvicorn")
expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong


@contextmanager
def serving(site, port=0):
    """The site on a port of loopback, its address; closed at the end as SIGTERM would."""
    bound = socket.create_server(("127.0.0.1", port))
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            started.set()

    server = Server(uvicorn.Config(make_app(site), log_level="error", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=lambda: server.run(sockets=[bound]), daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}", bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)


CONTRAST = """element => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let ground = element;
  while (ground && /rgba\\(0, 0, 0, 0\\)/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
  const [a, b] = [getComputedStyle(element).color, getComputedStyle(ground).backgroundColor].map(light);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
