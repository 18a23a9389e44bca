"""SIGTERM: the server takes no more, and finishes what is under way."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip("uvicorn")
SERVER = """
import sys
from dataclasses import replace
from pathlib import Path
from mispair.serving.app import run_server
from tests.serving.sites import NumberEncoder, make_site

class Slow(NumberEncoder):
    def encode_text(self, text):
        print("asked", flush=True)
        Path(sys.argv[2]).read_bytes()  # until somebody writes
        return super().encode_text(text)

site = make_site(Path(sys.argv[1]))
site = replace(site, encoder=Slow(site.encoder.vectors))
run_server(site, "127.0.0.1", 0, None, lambda address: print(address, flush=True))
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_what_is_under_way_is_finished(tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    process = subprocess.Popen([sys.executable, "-c", SERVER, tmp_path, gate], stdout=subprocess.PIPE, text=True)
    answers = []

    def ask():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(
            "POST", "/api/search", json.dumps({"text": "number 17"}), {"content-type": "application/json"}
        )
        response = connection.getresponse()
        answers.append((response.status, json.loads(response.read())["answers"][0]["pair"]))
        connection.close()

    try:
        port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
        asking = threading.Thread(target=ask)
        asking.start()
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGTERM)
        gate.write_bytes(b"go on")
        asking.join(60)
        assert process.wait(60) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.stdout.close()
    assert answers == [(200, 17)]
