"""Invariant: whatever others say about themselves is read as harmless peers, or as nobody.

A registry file, a gateway's list and the TXT strings of an mDNS record never raise; their peers can be
called, have one-line names, and only those of a gateway have a token, which leads through the gateway.
"""

from a2a_trio.rules.addresses import split_url
from a2a_trio.rules.directory import FoundPeer, Source, merge
from a2a_trio.rules.gateway_directory import read_directory
from a2a_trio.rules.mdns_records import Record, read_record
from a2a_trio.rules.registration import read_reply
from a2a_trio.rules.registry_entry import read_entry
from fuzz.harness import Target

BASE = "http://127.0.0.1:9920"
TOKEN = "agw_0"  # noqa: S105 - nobody has it


def check_peer(peer: FoundPeer) -> None:
    """It can be called and shown."""
    split_url(peer.url)
    assert peer.name
    for text in (peer.name, peer.url, peer.cwd, peer.model, *peer.tools, *peer.capabilities):
        assert text.isprintable()
    if peer.source is Source.GATEWAY:
        assert peer.url.startswith(f"{BASE}/")
        assert peer.token == TOKEN
    else:
        assert peer.token == ""


def record_of(data: bytes) -> Record:
    """The first line is the address, the others are TXT strings."""
    address, *strings = data.split(b"\n")
    pairs = (string.partition(b"=") for string in strings)
    return Record(
        instance=f"{address.decode('latin-1')}._a2a._tcp.local.",
        port=len(data) * 7,
        addresses=(address.decode("latin-1"), "10.0.0.1"),
        txt={key: value if equals else None for key, equals, value in pairs},
    )


def check(data: bytes) -> None:
    """Read the data as everything that others may say."""
    found = [read_entry(data), read_record(record_of(data))]
    listed = read_directory(data, key="lab", base=BASE, own_name="me", token=TOKEN)
    peers = [peer for peer in found if peer is not None]
    peers += () if listed is None else listed.peers
    for peer in peers:
        check_peer(peer)
    assert len(merge(peers)) <= len(peers)
    reply = read_reply(200, data, None)
    assert reply.caller_token.isprintable()


TARGET = Target(
    name="discovery",
    check=check,
    words=(
        b'{"peers":[{"name":"a","url":"/peer/a/","healthy":null,"channel":true}]}',
        b'{"pid":1,"url":"http://127.0.0.1:1/","agentName":"a","tools":["x"],"skills":[{"id":"s"}]}',
        b'{"state":"accepted","caller_token":"agw_1"}',
        b"\nurl=http://127.0.0.1:9910/",
        b"\ncwd=/work\nmodel=p/m",
        b"127.0.0.1",
        b"\\u202e",
        b"//",
        b"http://u:p@h/",
    ),
)
