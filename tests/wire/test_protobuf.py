"""Our JSON against Google's own ProtoJSON, over the messages that the official SDK generates."""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings

from a2a_trio.testing.strategies import values
from a2a_trio.wire import agent_card, model, requests
from a2a_trio.wire.codec import decode, encode

pytest.importorskip("a2a.types.a2a_pb2")

from a2a.types import a2a_pb2
from google.protobuf import json_format  # type: ignore[import-untyped] # stubs are a separate package

MESSAGES = a2a_pb2.DESCRIPTOR.message_types_by_name
OUR_NAMES = {
    "APIKeySecurityScheme": "ApiKeySecurityScheme",
    "HTTPAuthSecurityScheme": "HttpAuthSecurityScheme",
}


def class_of(name: str) -> Any:
    for module in (model, requests, agent_card):
        kind = getattr(module, OUR_NAMES.get(name, name), None)
        if kind is not None:
            return kind
    raise LookupError(name)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_has_a_class_with_the_same_members(name: str) -> None:
    """Neither more nor fewer members than the proto."""
    ours = {field.name for field in attrs.fields(class_of(name))}
    assert ours == {field.name for field in MESSAGES[name].fields}


@pytest.mark.parametrize("name", MESSAGES)
def test_protobuf_reads_what_we_write_and_we_read_what_it_writes(name: str) -> None:
    """Through the official message and back: canonical, in snake_case, with all defaults."""
    kind = class_of(name)
    message_type = getattr(a2a_pb2, name)

    @settings(max_examples=25)
    @given(values(kind))
    def check(value: Any) -> None:
        message = json_format.ParseDict(encode(value), message_type())
        assert decode(json_format.MessageToDict(message), kind) == value
        printed = json_format.MessageToDict(
            message, preserving_proto_field_name=True, use_integers_for_enums=True
        )
        assert decode(printed, kind) == value
        full = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
        assert decode(full, kind) == value

    check()
