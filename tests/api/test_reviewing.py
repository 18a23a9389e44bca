"""Reviews and pages from Python: decisions go in and out, and the server runs in a notebook too."""

import subprocess
import sys

import pytest

import mispair as mp
from tests.reviewing.audits import small_audit

_CELL = """
import asyncio, os, signal, sys, threading, urllib.request
import mispair as mp

pages = []

def look(address):
    with urllib.request.urlopen(address, timeout=60) as page:
        pages.append(page.status)
    os.kill(os.getpid(), signal.SIGINT)  # what the stop button of a notebook does

def say(line):
    if not pages:
        print(line)
        threading.Thread(target=look, args=(line.split()[1],)).start()

async def cell():
    mp.review(sys.argv[1], port=0, reviewer="ann", say=say)

if sys.argv[2] == "notebook":
    asyncio.new_event_loop().run_until_complete(cell())  # asyncio.run would take SIGINT for itself
else:
    mp.review(sys.argv[1], port=0, reviewer="ann", say=say)
print(*pages)
"""


@pytest.fixture
def audit(tmp_path):
    small_audit(60)[0].save(tmp_path / "audit")
    return tmp_path / "audit"


def test_decisions_go_in_and_out(audit, tmp_path):
    with pytest.raises(mp.InputError, match="nothing was decided yet"):
        mp.review_status(audit)
    (tmp_path / "said.csv").write_text("pair,answer,reviewer\n1,right,ann\n4,wrong,ann\n")
    assert mp.import_decisions(audit, tmp_path / "said.csv") == 2
    assert "2 answers about 60 pairs" in mp.review_status(audit)
    assert mp.export_decisions(audit, tmp_path / "out.csv") == 2
    assert mp.import_decisions(audit, tmp_path / "out.csv", decisions=tmp_path / "other.jsonl") == 2
    assert "2 answers" in mp.review_status(audit, decisions=tmp_path / "other.jsonl")


@pytest.mark.parametrize("notebook", [True, False])
def test_a_server_runs_in_a_notebook_too_and_ends_when_interrupted(audit, notebook):
    """In a process of its own: another test's browser may have left an event loop running in this one."""
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-c", _CELL, str(audit), "notebook" if notebook else "script"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said, status = done.stdout.splitlines()
    assert said.startswith("Review: http://127.0.0.1:")
    assert status == "200"


def test_an_open_host_needs_a_token(audit):
    with pytest.raises(mp.InputError, match="token"):
        mp.serve(audit, host="0.0.0.0")
