"""The fake gateway does what peers of a real one have to reckon with."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import attrs
import httpx
import pytest
import trio
import trio.testing

from a2a_trio.testing.fake_gateway import FakeGateway, open_fake_gateway
from a2a_trio.testing.gateway_state import Answer
from tests.discovery.conftest import LIMIT

HERE: Final = "http://127.0.0.1:9/"


@attrs.frozen
class Caller:
    """Somebody with a token."""

    client: httpx.AsyncClient
    gateway: FakeGateway

    async def send(
        self, method: str, path: str, token: str = "", body: object = None
    ) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return await self.client.request(
            method, self.gateway.url + path, headers=headers, json=body
        )

    async def register(self, name: str = "me", *, accepted: bool = True) -> str:
        """Register a peer and return its own token."""
        gateway = self.gateway
        token = gateway.bootstrap_token if accepted else gateway.gateway_token
        answer = await self.send("POST", "/register", token, {"name": name, "url": HERE})
        assert answer.status_code == 201
        assert answer.json()["state"] == ("accepted" if accepted else "pending")
        return str(answer.json()["caller_token"])


@asynccontextmanager
async def calling(**knobs: Any) -> AsyncIterator[Caller]:
    with trio.fail_after(LIMIT):
        async with (
            open_fake_gateway(**knobs) as gateway,
            httpx.AsyncClient(timeout=LIMIT, trust_env=False) as client,
        ):
            yield Caller(client, gateway)


async def test_own_token_is_told_once_and_the_only_one_afterwards() -> None:
    """The shared one opens neither the entry nor the channel."""
    async with calling() as caller:
        own, shared = await caller.register(), caller.gateway.bootstrap_token
        again = {"name": "me", "url": HERE}
        assert (await caller.send("POST", "/register", shared, again)).status_code == 409
        assert (await caller.send("POST", "/register", own, again)).status_code == 401
        assert (await caller.send("PATCH", "/register", shared, {"name": "me"})).status_code == 409
        assert (await caller.send("PATCH", "/register", own, {"name": "me"})).status_code == 200
        assert (await caller.send("GET", "/channel?name=me", shared)).status_code == 403
        assert (await caller.send("DELETE", "/register?name=me", shared)).status_code == 404
        assert (await caller.send("DELETE", "/register?name=me", own)).status_code == 200
        assert (await caller.send("PATCH", "/register", own, {"name": "me"})).status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"url": HERE}, 422),
        ({"name": 7, "url": HERE}, 422),
        ({"name": "a b", "url": HERE}, 422),
        ({"name": "x" * 65, "url": HERE}, 422),
        ({"name": "me", "url": "ftp://x"}, 422),
        ({"name": "me", "url": HERE, "upstream_token": "x" * 513}, 422),
        ({"name": "me", "url": HERE, "card": {"x": "y" * 300_000}}, 413),
        ([], 422),
    ],
)
async def test_registration_that_cannot_be_taken(body: object, status: int) -> None:
    """With the status of the original."""
    async with calling() as caller:
        token = caller.gateway.gateway_token
        assert (await caller.send("POST", "/register", token, body)).status_code == status
        assert caller.gateway.state.peers == {}


async def test_malformed_bodies_come_before_credentials() -> None:
    """A stranger sees 400, 415 or 413, not 401."""
    async with calling() as caller:
        url = f"{caller.gateway.url}/register"
        answer = await caller.client.post(
            url, content=b"{", headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400
        assert (await caller.client.post(url, content=b"{}")).status_code == 415
        assert (await caller.client.post(url, content=b"x" * 2_100_000)).status_code == 413
        answer = await caller.send("POST", "/register", "", {"name": "me", "url": HERE})
        assert answer.status_code == 401


async def test_directory_lists_the_accepted_to_who_has_a_token() -> None:
    """Also to one that was revoked; a stranger sees an empty list, not a refusal."""
    async with calling() as caller:
        own = await caller.register("one")
        await caller.register("two", accepted=False)

        async def listed(token: str) -> list[str]:
            answer = await caller.send("GET", "/.well-known/agent.json", token)
            assert answer.status_code == 200
            return [peer["name"] for peer in answer.json()["peers"]]

        assert await listed(own) == ["one"]
        caller.gateway.accept("two")
        assert await listed(own) == ["one", "two"]
        assert await listed("wrong") == await listed("") == []
        caller.gateway.revoke("one")
        assert await listed(own) == ["two"]


async def test_calls_are_refused_in_order() -> None:
    """Without a token, of nobody, of somebody who is not accepted; the rest leads to a login."""
    async with calling() as caller:
        own = await caller.register("one")
        await caller.register("two", accepted=False)
        assert (await caller.send("POST", "/peer/one/")).status_code == 401
        assert (await caller.send("POST", "/peer/three/", own)).status_code == 404
        assert (await caller.send("POST", "/peer/two", own)).status_code == 403
        assert (await caller.send("POST", "/peer/one", own)).status_code == 502
        elsewhere = await caller.send("GET", "/nothing", own)
        assert (elsewhere.status_code, elsewhere.headers["location"]) == (303, "/login")


async def test_rate_limit_is_one_for_everything_and_says_no_time() -> None:
    """Twenty requests of any kind, and registering is refused for a minute."""
    async with calling(limits=True) as caller:
        own = await caller.register()
        for _ in range(19):
            assert (await caller.send("GET", "/.well-known/agent.json", own)).status_code == 200
        refused = await caller.send("PATCH", "/register", own, {"name": "me"})
        assert (refused.status_code, "retry-after" in refused.headers) == (429, False)


async def stream_of(
    caller: Caller, token: str, nursery: trio.Nursery
) -> trio.MemoryReceiveChannel[str]:
    """Open a channel and return its lines as they come."""
    send, lines = trio.open_memory_channel[str](1_000)

    async def read() -> None:
        headers = {"authorization": f"Bearer {token}"}
        url = f"{caller.gateway.url}/channel?name=me"
        async with send, caller.client.stream("GET", url, headers=headers) as answer:
            async for line in answer.aiter_lines():
                # Without waiting: httpx's generators must not be left between two lines.
                send.send_nowait(line)

    nursery.start_soon(read)
    return lines


async def next_data(lines: trio.MemoryReceiveChannel[str], event: str) -> str:
    """Return the data of the next event of a kind."""
    async for line in lines:
        if line == f"event: {event}":
            return (await lines.receive()).removeprefix("data: ")
    raise AssertionError("the stream ended")


async def test_channel_carries_calls_and_their_answers() -> None:
    """Ids from 0, headers of the caller's own withheld, an answer for each id once."""
    async with calling() as caller, trio.open_nursery() as nursery:
        own = await caller.register()
        lines = await stream_of(caller, own, nursery)
        secret = await next_data(lines, "hello")
        send, got = trio.open_memory_channel[Answer](1)

        async def call() -> None:
            headers = {"x-gateway-caller": "z", "x-a": "1"}
            answer = await caller.gateway.call("me", path="/x?a=b", body=b"hi", headers=headers)
            await send.send(answer)

        nursery.start_soon(call)
        envelope = json.loads(await next_data(lines, "request"))
        assert (envelope["id"], envelope["chan_secret"]) == (0, secret)
        assert (envelope["path"], envelope["query"], envelope["body_b64"]) == ("/x", "a=b", "aGk=")
        assert envelope["headers"]["x-a"] == "1"
        assert not {"authorization", "x-gateway-caller", "host"} & envelope["headers"].keys()

        path = "/channel/response/0?name=me"
        answer = {"id": 0, "status": 201, "headers": {"x-b": "2", "set-cookie": "c"}, "body_b64": "eW8=",
                  "chan_secret": secret}  # fmt: skip
        wrong = {**answer, "chan_secret": "another"}
        assert (await caller.send("POST", path, own, wrong)).status_code == 404
        assert (await caller.send("POST", path, own, {**answer, "id": 1})).status_code == 422
        shared = caller.gateway.gateway_token
        assert (await caller.send("POST", path, shared, answer)).status_code == 403
        assert (await caller.send("POST", path, own, answer)).status_code == 200
        assert (await caller.send("POST", path, own, answer)).status_code == 404
        taken = await got.receive()
        assert (taken.status, taken.body) == (201, b"yo")
        assert dict(taken.headers)["x-b"] == "2"
        assert "set-cookie" not in dict(taken.headers)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("knobs", "status"), [({"proxy_timeout": 0.2}, 504), ({"queue": 0, "ping": 0.05}, 503)]
)
async def test_caller_of_a_peer_that_does_not_answer(knobs: Any, status: int) -> None:
    """After the gateway's time, or at once if too much waits already."""
    async with calling(**knobs) as caller, trio.open_nursery() as nursery:
        lines = await stream_of(caller, await caller.register(), nursery)
        await next_data(lines, "hello")
        if status == 503:
            caller.gateway.stall_channel("me")
            await trio.sleep(0.2)
        assert (await caller.gateway.call("me")).status == status
        nursery.cancel_scope.cancel()


async def test_end_of_a_channel_ends_its_calls() -> None:
    """At once, and the end of an old stream takes a newer one's entry away."""
    async with calling() as caller, trio.open_nursery() as nursery:
        own = await caller.register()
        lines = await stream_of(caller, own, nursery)
        await next_data(lines, "hello")
        send, got = trio.open_memory_channel[Answer](1)

        async def call() -> None:
            await send.send(await caller.gateway.call("me"))

        nursery.start_soon(call)
        await next_data(lines, "request")
        caller.gateway.drop_channel("me")
        assert (await got.receive()).status == 502
        assert not caller.gateway.has_channel("me")
        nursery.cancel_scope.cancel()


async def test_faults_come_once_and_in_order() -> None:
    """An answer, a reset, and then as usual."""
    async with calling() as caller:
        own = await caller.register()
        gateway = caller.gateway
        gateway.fault("GET", "/.well-known", status=429, headers=(("retry-after", "7"),))
        gateway.fault("GET", "/.well-known", reset=True)
        first = await caller.send("GET", "/.well-known/agent.json", own)
        assert (first.status_code, first.headers["retry-after"]) == (429, "7")
        with pytest.raises(httpx.TransportError):
            await caller.send("GET", "/.well-known/agent.json", own)
        assert (await caller.send("GET", "/.well-known/agent.json", own)).status_code == 200
        gateway.fault("GET", "/", hang=True, times=9)
        gateway.clear_faults()
        assert (await caller.send("GET", "/.well-known/agent.json", own)).status_code == 200


async def answer_for(caller: Caller, envelope: Any, own: str, **given: object) -> int:
    """Answer a call with something other than an empty 200; return what the peer is told."""
    body = {"id": envelope["id"], "status": 200, "headers": {}, "body_b64": ""}
    body |= {"chan_secret": envelope["chan_secret"], **given}
    path = f"/channel/response/{envelope['id']}?name=me"
    return (await caller.send("POST", path, own, body)).status_code


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"headers": {"x-a": "1\n2", "x y": "3", "x-b": "2"}}, 200),
        ({"status": 204, "body_b64": "eW8="}, 204),
        ({"status": 101}, 502),
        ({"status": 99}, 502),
        ({"body_b64": "!"}, 413),
    ],
)
async def test_odd_answers_of_a_peer_reach_its_caller(
    given: dict[str, object], status: int
) -> None:
    """What HTTP cannot carry is left out or replaced, and the gateway goes on."""
    async with calling() as caller, trio.open_nursery() as nursery:
        own = await caller.register()
        lines = await stream_of(caller, own, nursery)
        send, got = trio.open_memory_channel[Answer](1)

        async def call() -> None:
            await send.send(await caller.gateway.call("me"))

        nursery.start_soon(call)
        envelope = json.loads(await next_data(lines, "request"))
        assert await answer_for(caller, envelope, own, **given) == 200
        taken = await got.receive()
        assert taken.status == status
        assert not {"x-a", "x y"} & dict(taken.headers).keys()
        assert ("x-b" in dict(taken.headers)) is ("headers" in given)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "given", [{"body_b64": 5}, {"headers": {"x": 5}}, {"status": "200"}, {"id": True}]
)
async def test_answer_of_another_shape_leaves_the_call_open(given: dict[str, object]) -> None:
    """The peer is told 422 and can answer again."""
    async with calling() as caller, trio.open_nursery() as nursery:
        own = await caller.register()
        lines = await stream_of(caller, own, nursery)
        await next_data(lines, "hello")
        nursery.start_soon(caller.gateway.call, "me")
        envelope = json.loads(await next_data(lines, "request"))
        assert await answer_for(caller, envelope, own, **given) == 422
        assert await answer_for(caller, envelope, own) == 200
        nursery.cancel_scope.cancel()


async def test_stalled_channel_sends_everything_once_it_resumes() -> None:
    """Also the event for which it was already waiting when it stalled."""
    async with calling() as caller, trio.open_nursery() as nursery:
        lines = await stream_of(caller, await caller.register(), nursery)
        await next_data(lines, "hello")
        caller.gateway.stall_channel("me")
        caller.gateway.push("me", b"1")
        await trio.testing.wait_all_tasks_blocked()
        caller.gateway.push("me", b"2")
        caller.gateway.resume_channel("me")
        assert [await next_data(lines, "request") for _ in range(2)] == ["1", "2"]
        nursery.cancel_scope.cancel()


async def test_answer_to_a_caller_that_has_gone_finds_no_call() -> None:
    """The peer is not told of it, and gets 404 for its answer."""
    async with calling() as caller, trio.open_nursery() as nursery:
        own = await caller.register()
        lines = await stream_of(caller, own, nursery)
        async with trio.open_nursery() as calls:
            calls.start_soon(caller.gateway.call, "me")
            envelope = json.loads(await next_data(lines, "request"))
            calls.cancel_scope.cancel()
        await caller.gateway.until(lambda: bool(caller.gateway.requests("POST", "/peer/me")))
        assert caller.gateway.requests("POST", "/peer/me")[0].status == 0
        assert await answer_for(caller, envelope, own) == 404
        nursery.cancel_scope.cancel()


async def test_direct_call_passes_path_and_body_on_as_they_are() -> None:
    """Nothing unescaped, nothing unpacked, nothing added but the peer's own credential."""
    packed = gzip.compress(b"hello")
    heads: list[bytes] = []

    async def upstream(stream: trio.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive_some()
            heads.append(head)
            size = str(len(packed)).encode()
            await stream.send_all(
                b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: "
                + size
                + b"\r\n\r\n"
            )
            await stream.send_all(packed)

    async with calling() as caller, trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, upstream, 0, host="127.0.0.1"))
        url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/"
        body = {"name": "me", "url": url, "upstream_token": "upstream"}
        await caller.send("POST", "/register", caller.gateway.bootstrap_token, body)
        answer = await caller.gateway.call("me", path="/a%2Fb?q=%20", method="GET")
        assert answer.body == b"hello"
        assert heads[0].startswith(b"GET /a%2Fb?q=%20 HTTP/1.1\r\n")
        assert b"authorization: bearer upstream\r\n" in heads[0].lower()
        assert "upstream_token" not in repr(caller.gateway.state.peers["me"])
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("POST", "/channel?name=me", 405, "GET,HEAD"),
        ("POST", "/.well-known/agent.json", 405, "GET,HEAD"),
        ("GET", "/channel/response/0?name=me", 405, "POST"),
        ("PUT", "/register", 405, "POST,PATCH,DELETE"),
        ("GET", "/channel", 400, None),
        ("DELETE", "/register", 400, None),
        ("POST", "/channel/response/x?name=me", 400, None),
        ("POST", "/channel/response/0?name=me", 415, None),
        ("GET", "/api/peers", 401, None),
        ("HEAD", "/.well-known/agent.json", 200, None),
    ],
)
async def test_requests_that_no_route_takes(
    method: str, path: str, status: int, allow: str | None
) -> None:
    """Wrong methods are told the right ones; what is missing comes before what is asked."""
    async with calling() as caller:
        own = await caller.register()
        headers = {"authorization": f"Bearer {own}"}
        answer = await caller.client.request(method, caller.gateway.url + path, headers=headers)
        assert (answer.status_code, answer.headers.get("allow")) == (status, allow)


async def test_reject_forgets_only_who_waits() -> None:
    """And the token goes with the entry."""
    async with calling() as caller:
        await caller.register("one")
        own = await caller.register("two", accepted=False)
        caller.gateway.reject("one")
        caller.gateway.reject("two")
        assert list(caller.gateway.state.peers) == ["one"]
        assert (await caller.send("PATCH", "/register", own, {"name": "two"})).status_code == 401
