"""Callers without any library: ``curl`` against ``python -m a2a_trio serve``."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

# Exactly what a user types after reading the pi-a2a documentation: no A2A-Version header.
CURL_BODY = (
    b'{"jsonrpc":"2.0","id":1,"method":"SendMessage",\n'
    b'       "params":{"message":{"messageId":"m1","role":"ROLE_USER",\n'
    b'                 "parts":[{"text":"Find all TODO comments in src/"}]}}}'
)
CURL_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "curl/8.5.0",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the echo agent as the command serves it, on a port that the system chose."""
    home = tmp_path_factory.mktemp("home")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("A2A_")}
    with subprocess.Popen(
        [sys.executable, "-m", "a2a_trio", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environ, "A2A_HOME": str(home), "PYTHONUNBUFFERED": "1"},
        cwd=home,
    ) as process:
        assert process.stdout is not None
        output = []
        for line in process.stdout:
            output.append(line.decode())
            found = re.search(r"http://127\.0\.0\.1:\d+/", output[-1])
            if found:
                break
        else:
            pytest.fail("the command printed no address:\n" + "".join(output))
        try:
            yield found[0]
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


def post(url: str) -> httpx.Response:
    return httpx.post(url, content=CURL_BODY, headers=CURL_HEADERS, timeout=30)


def test_answers_the_curl_call(served: str) -> None:
    """No version header: served as v1.0, the answer wrapped in ``task``."""
    answer = post(served)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert (body["jsonrpc"], body["id"]) == ("2.0", 1)
    task = body["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    texts = [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]]
    assert "Find all TODO comments in src/" in "".join(texts)


def test_answers_the_same_call_again(served: str) -> None:
    """People repeat the line with the same messageId and mean a new task each time."""
    ids = {post(served).json()["result"]["task"]["id"] for _ in range(2)}
    assert len(ids) == 2


def test_serves_the_card(served: str) -> None:
    """The card is found where the protocol says and names the address that was bound."""
    answer = httpx.get(f"{served}.well-known/agent-card.json", headers={"Accept": "*/*"})
    assert answer.status_code == 200
    card = answer.json()
    assert [i["url"] for i in card["supportedInterfaces"]] == [served, served]
    assert answer.headers["etag"]


def test_serves_the_older_card(served: str) -> None:
    """Callers that know only the older path and shape find ``url`` and ``protocolVersion``."""
    card = httpx.get(f"{served}.well-known/agent.json").json()
    assert card["url"] == served
    assert card["protocolVersion"].startswith("0.3")


def test_runs_curl_itself(served: str) -> None:
    """The same with the program, byte for byte as documented."""
    command = ["curl", "--silent", "--show-error", "--max-time", "30", "-X", "POST", served]
    command += ["-H", "Content-Type: application/json", "-d", CURL_BODY.decode()]
    done = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(done.stdout)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
