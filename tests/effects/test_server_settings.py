"""Rows of pi-a2a's tables that a server without a socket shows, under a virtual clock."""
# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture

from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from a2a_trio import Settings, SettingsError, TaskContext, echo
from a2a_trio.testing.in_process import InProcessServer, open_in_process
from a2a_trio.testing.transport import EndpointTransport
from a2a_trio.wire.extensions import CARD_PATH
from tests.effects.conftest import (
    ALICE,
    BOB,
    SHARED,
    TOKENS,
    Effect,
    Via,
    case_ids,
    cases,
    load,
    with_effect,
    without_effect,
)

DAY: Final = 86_400.0


async def request(
    server: InProcessServer, verb: str, path: str = "/", *, token: str = "", **more: Any
) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(
        transport=EndpointTransport(server.assembly.endpoint.handle)
    ) as client:
        return await client.request(verb, server.url.rstrip("/") + path, headers=headers, **more)


async def say(server: InProcessServer, *, token: str = "", context: str = "") -> httpx.Response:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    if context:
        message["contextId"] = context
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    return await request(server, "POST", token=token, json=body)


async def card_of(settings: Settings) -> dict[str, Any]:
    async with open_in_process(echo, settings) as server:
        found: dict[str, Any] = (await request(server, "GET", CARD_PATH)).json()
        return found


async def name_on_the_card(settings: Settings) -> object:
    name = (await card_of(settings))["name"]
    return name if name == "Ada" else "the host's"


async def url_on_the_card(settings: Settings) -> object:
    return (await card_of(settings))["supportedInterfaces"][0]["url"]


async def skills_on_the_card(settings: Settings) -> object:
    return [skill["id"] for skill in (await card_of(settings)).get("skills", [])]


async def session_on_the_card(settings: Settings) -> object:
    return "startedAt" in str(await card_of(settings))


async def folder_of_an_agent(settings: Settings) -> object:
    async def agent(task: TaskContext) -> str:
        return str(task.workspace)

    async with open_in_process(agent, settings) as server, server.client() as client:
        told = (await client.send("where?")).text
    assert f"'cwd': '{told}'" in str(await card_of(settings))
    return told


async def statuses(settings: Settings) -> object:
    """Return what callers without a token, with the shared one, and two named ones are told."""
    async with open_in_process(echo, settings) as server:
        return [(await say(server, token=t)).status_code for t in ("", SHARED, ALICE, BOB)]


async def identity_of_alice(settings: Settings) -> object:
    async def agent(task: TaskContext) -> str:
        return task.identity

    token = ALICE if settings.server.peer_tokens else None
    async with open_in_process(agent, settings) as server, server.client(token=token) as client:
        return (await client.send("who am I?")).text


async def runs_at_the_same_time(settings: Settings) -> object:
    async def agent(_task: TaskContext) -> None:
        await trio.sleep_forever()

    async with open_in_process(agent, settings) as server, trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(say, server)
        await trio.testing.wait_all_tasks_blocked()
        running = server.engine.statistics().slots_in_use
        nursery.cancel_scope.cancel()
    return running


async def longest_run(settings: Settings, *, detached: bool) -> object:
    """Return after how many seconds an agent that takes three days is stopped."""
    took: list[float] = []

    async def agent(_task: TaskContext) -> str:
        began = trio.current_time()
        try:
            await trio.sleep(3 * DAY)
        finally:
            took.append(trio.current_time() - began)
        return "done"

    async with open_in_process(agent, settings) as server:
        await server.calls().send("work", detached=detached)
        await trio.sleep(4 * DAY)
    return took


async def longest_blocking_run(settings: Settings) -> object:
    return await longest_run(settings, detached=False)


async def longest_detached_run(settings: Settings) -> object:
    return await longest_run(settings, detached=True)


async def turns_in_one_context(settings: Settings) -> object:
    """Return how many turns are taken before one is rejected."""
    async with open_in_process(echo, settings) as server:
        for taken in range(25):
            answer = (await say(server, context="ping-pong")).json()
            if answer["result"]["task"]["status"]["state"] == "TASK_STATE_REJECTED":
                return taken
    return "no end"


async def calls_in_a_minute(settings: Settings) -> object:
    """Return how many calls are taken before one is refused, and what is so after the minute."""
    async with open_in_process(echo, settings) as server:
        for taken in range(200):
            refused = await say(server)
            if refused.status_code == 429:
                await trio.sleep(60)
                return taken, int(refused.headers["retry-after"]), (await say(server)).status_code
    return "no end"


SKILL: Final = {"id": "review", "name": "Review", "description": "Reads a diff", "tags": ["code"]}
LISTED: Final = {"server": {**TOKENS["server"], "trustedPeers": ["alice"]}}
URL: Final = "https://agents.example/ada"
NO_TOKENS: Final = [200, 401, 401, 401]
"""A token that nobody has given out is refused even where none is needed."""

EFFECTS: Final = (
    Effect(
        key="server.agentName", value="Ada", env="A2A_AGENT_NAME", text="Ada",
        probe=name_on_the_card, before="the host's", after="Ada",
    ),
    Effect(
        key="server.publicUrl", value=URL, env="A2A_PUBLIC_URL", text=URL,
        probe=url_on_the_card, before="http://127.0.0.1:9910/", after=f"{URL}/",
    ),
    Effect(
        key="server.skills", value=[SKILL], probe=skills_on_the_card, before=["general"], after=["review"],
    ),
    Effect(
        key="discovery.enrichCard", value=False, env="A2A_ENRICH_CARD", text="off",
        probe=session_on_the_card, before=True, after=False,
    ),
    Effect(
        key="server.workspace", value="/", env="A2A_WORKSPACE", text="/",
        probe=folder_of_an_agent, before=str(Path.cwd()), after="/",
    ),
    Effect(
        key="server.sharedToken", value=SHARED, env="A2A_BEARER_TOKEN", text=SHARED,
        probe=statuses, before=NO_TOKENS, after=[401, 200, 401, 401],
    ),
    Effect(
        key="server.peerTokens", value=TOKENS["server"]["peerTokens"], env="A2A_PEER_TOKENS",
        text=f"alice:{ALICE},bob:{BOB}",
        probe=statuses, before=NO_TOKENS, after=[401, 401, 200, 200],
    ),
    Effect(
        key="server.peerTokens", value={"alice": ALICE}, env="A2A_PEER_TOKENS",
        text=f"alice:{ALICE}",
        probe=identity_of_alice, before="ip:127.0.0.1", after="alice",
    ),
    Effect(
        key="server.trustedPeers", value=["alice"], env="A2A_TRUSTED_PEERS", text="alice",
        base=TOKENS, probe=statuses, before=[401, 401, 200, 200], after=[401, 401, 200, 403],
    ),
    Effect(
        key="server.allowAllUsers", value=True, env="A2A_ALLOW_ALL_USERS", text="yes",
        base=LISTED, probe=statuses, before=[401, 401, 200, 403], after=[401, 401, 200, 200],
    ),
    Effect(
        key="server.maxConcurrent", value=2, env="A2A_MAX_CONCURRENT", text="2",
        probe=runs_at_the_same_time, before=3, after=2,
    ),
    Effect(
        key="server.replyTimeoutSec", value=7, env="A2A_REPLY_TIMEOUT", text="7",
        probe=longest_blocking_run, before=[300], after=[7],
    ),
    Effect(
        key="server.replyTimeoutSec", value=0, env="A2A_REPLY_TIMEOUT", text="0",
        probe=longest_blocking_run, before=[300], after=[3 * DAY],
    ),
    Effect(
        key="server.asyncTimeoutSec", value=3600, env="A2A_ASYNC_TIMEOUT", text="3600",
        probe=longest_detached_run, before=[DAY], after=[3600],
    ),
    Effect(
        key="server.asyncTimeoutSec", value=0, env="A2A_ASYNC_TIMEOUT", text="0",
        probe=longest_detached_run, before=[DAY], after=[3 * DAY],
    ),
    Effect(
        key="server.maxPingpongTurns", value=2, env="A2A_MAX_PINGPONG_TURNS", text="2",
        probe=turns_in_one_context, before=5, after=2,
    ),
    Effect(
        key="server.rateLimitPerMin", value=4, env="A2A_RATE_LIMIT", text="4",
        probe=calls_in_a_minute, before=(60, 60, 200), after=(4, 60, 200),
    ),
)  # fmt: skip


@pytest.mark.parametrize(("effect", "via"), cases(EFFECTS), ids=case_ids(EFFECTS))
async def test_setting_has_its_effect(
    effect: Effect, via: Via, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Two settings files, or one and a variable: the servers differ as the table says."""
    assert await effect.probe(without_effect(tmp_path / "before", effect)) == effect.before
    assert await effect.probe(with_effect(tmp_path / "after", effect, via)) == effect.after


async def test_a_workspace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Before anything is served, with its name."""
    missing = tmp_path / "missing"
    settings = load(tmp_path / "home", {"server": {"workspace": str(missing)}}).settings
    with pytest.raises(SettingsError, match="missing is not a folder"):
        async with open_in_process(echo, settings):
            pytest.fail("it is served")
