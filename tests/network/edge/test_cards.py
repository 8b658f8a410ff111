"""The card over HTTP: two audiences, two spellings, validators."""

import json
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from a2a_trio.rules.admission import AdmissionPolicy
from a2a_trio.rules.card import CardFacts, build_card
from a2a_trio.server import cards as cards_module
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.codec import decode
from a2a_trio.wire.model import JsonObject

NEW, OLD = "/.well-known/agent-card.json", "/.well-known/agent.json"
TOKENS = AdmissionPolicy(tokens=(("alice", "a-token"),))
SESSION: JsonObject = {"pid": 17, "cwd": "/home/pi"}


def facts() -> CardFacts:
    return CardFacts(
        name="pi",
        description="An agent.",
        version="1.2.3",
        url="http://127.0.0.1:9910/",
        session=SESSION,
        secured=True,
    )


async def test_the_new_path_is_strictly_v1(edge: Any) -> None:
    response = await edge.get(NEW)
    value = json.loads(response.body)
    card = decode(value, AgentCard)
    assert (response.status, card.name) == (200, "pi")
    assert not {"url", "protocolVersion", "metadata", "preferredTransport"} & value.keys()
    assert {i.protocol_version for i in card.supported_interfaces} == {"1.0", "0.3"}


@pytest.mark.parametrize(("path", "headers"), [(OLD, {}), (NEW, {"a2a_version": "0.3"})])
async def test_the_older_card_has_the_older_members(
    edge: Any, path: str, headers: dict[str, str]
) -> None:
    response = await edge.get(path, **headers)
    value = json.loads(response.body)
    assert value["url"] == "http://127.0.0.1:9910/"
    assert value["protocolVersion"].startswith("0.3")
    assert "supportedInterfaces" not in value
    assert response.header("a2a-version") == "0.3"


async def test_a_version_in_the_query_chooses_the_older_card(edge: Any) -> None:
    assert "url" in json.loads((await edge.get(NEW, query="A2A-Version=0.3")).body)


async def test_card_compat_serves_both_spellings_in_one(make_edge: Any) -> None:
    edge = make_edge(TOKENS, facts(), card_compat=True)
    for path in (NEW, OLD):
        value = json.loads((await edge.get(path, authorization="Bearer a-token")).body)
        assert value["url"]
        assert value["supportedInterfaces"]
        assert SESSION.items() <= value["metadata"].items()
        bearer = value["securitySchemes"]["bearer"]
        assert bearer["type"] == "http"
        assert bearer["httpAuthSecurityScheme"]["scheme"] == "Bearer"


async def test_session_metadata_is_for_authenticated_callers(make_edge: Any) -> None:
    edge = make_edge(TOKENS, facts())
    stranger = await edge.get(NEW)
    friend = await edge.get(NEW, authorization="Bearer a-token")
    assert b"/home/pi" not in stranger.body
    assert b"/home/pi" in friend.body
    older = json.loads((await edge.get(OLD, authorization="Bearer a-token")).body)
    assert SESSION.items() <= older["metadata"].items()
    assert "metadata" not in json.loads((await edge.get(OLD)).body)
    assert stranger.header("etag") != friend.header("etag")
    for response in (stranger, friend):
        assert response.header("cache-control").startswith("private")
        assert "authorization" in response.header("vary")


async def test_a_card_that_is_the_same_for_all_may_be_shared(edge: Any) -> None:
    response = await edge.get(NEW)
    assert response.header("cache-control") == f"public, max-age={cards_module.MAX_AGE}"
    assert response.header("last-modified") == "Fri, 02 Jan 2026 03:04:05 GMT"
    varies = ",".join(value for name, value in response.headers if name == "vary").lower()
    assert "a2a-version" in varies
    assert "origin" in varies


@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', 'W/{} , "x"', "*"])
async def test_a_card_that_the_caller_has_is_304(edge: Any, form: str) -> None:
    etag = (await edge.get(NEW)).header("etag")
    response = await edge.get(NEW, if_none_match=form.format(etag))
    assert (response.status, response.body) == (304, b"")
    assert response.header("etag") == etag
    assert response.header("cache-control")
    assert not response.header("content-type")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_none_match": '"other"'}, 200),
        ({"if_none_match": ""}, 200),
        ({"if_modified_since": "Fri, 02 Jan 2026 03:04:05 GMT"}, 304),
        ({"if_modified_since": "Fri, 02 Jan 2026 03:04:04 GMT"}, 200),
        ({"if_modified_since": "Fri, 02 Jan 2026 03:04:05 -0000"}, 304),
        ({"if_modified_since": "yesterday"}, 200),
        # If-None-Match wins (RFC 9110 13.1.3).
        ({"if_none_match": '"x"', "if_modified_since": "Fri, 02 Jan 2099 00:00:00 GMT"}, 200),
    ],
)
async def test_validators(edge: Any, headers: dict[str, str], status: int) -> None:
    assert (await edge.get(NEW, **headers)).status == status


async def test_head_answers_validators_too(edge: Any) -> None:
    etag = (await edge.get(NEW)).header("etag")
    response = await edge.ask("HEAD", NEW, if_none_match=etag)
    assert (response.status, response.body) == (304, b"")


async def test_a_card_is_encoded_once(edge: Any) -> None:
    first, second = await edge.get(NEW), await edge.get(NEW)
    assert first.body is second.body


async def test_a_replaced_card_is_a_new_card(edge: Any) -> None:
    before = await edge.get(NEW)
    card = build_card(attrs.evolve(facts(), name="other"))
    edge.cards.replace(card, card, modified=datetime(2027, 1, 1, tzinfo=UTC))
    after = await edge.get(NEW, if_none_match=before.header("etag"))
    assert (after.status, json.loads(after.body)["name"]) == (200, "other")
    assert after.header("last-modified") == "Fri, 01 Jan 2027 00:00:00 GMT"
    assert json.loads((await edge.get("/health")).body)["agent"] == "other"
