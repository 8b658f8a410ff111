"""One gateway: being registered there, seeing who else is, and being called through it.

::

    run_gateway
    |- register loop              beats, wakes early when the channel's credential is refused
    `- channel                    while the gateway has not revoked this peer

A gateway that does not answer is tried again with growing pauses; it neither delays the start of the
peer nor ends anything.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, final
from urllib.parse import quote

import attrs
import trio

from a2a_trio._disk import problem_of
from a2a_trio._groups import plain_errors
from a2a_trio._log import get_logger
from a2a_trio._threads import Offload, in_thread
from a2a_trio.discovery.channel import ChannelStatus, Dispatch, run_channel
from a2a_trio.discovery.gateway_state import TokenFile
from a2a_trio.discovery.web import Web, fetch
from a2a_trio.errors import PeerError, PeerProtocolError, SettingsError
from a2a_trio.rules.backoff import Random, parse_retry_after
from a2a_trio.rules.directory import FoundPeer
from a2a_trio.rules.gateway_directory import GatewayDirectory, gateway_base, read_directory
from a2a_trio.rules.registration import ACCEPTED, REVOKED, Registration, Reply, Step, read_reply
from a2a_trio.wire.json_text import dumps
from a2a_trio.wire.model import JsonObject

__all__ = ["Gateway", "GatewayConfig", "list_gateway", "run_gateway"]

REQUEST_SEC: Final = 10.0
"""How long a registration, or the directory, may take."""
DEREGISTER_SEC: Final = 1.5
"""How long taking leave of a gateway may hold up a shutdown, and before that a first registration."""
MAX_REPLY_BYTES: Final = 65_536
"""Size of an answer to a registration."""
MAX_DIRECTORY_BYTES: Final = 8 * 1024 * 1024
"""Size of a directory: some thousand peers with their skills."""
DIRECTORY_PATH: Final = "/.well-known/agent.json"

_log = get_logger("a2a_trio.discovery")


@final
@attrs.frozen(kw_only=True)
class GatewayConfig:
    """How this peer uses a gateway.

    Raises:
        SettingsError: the URL cannot be a gateway's.
    """

    key: str
    """What the gateway is called in the names of its peers."""
    url: str
    token: str = attrs.field(repr=False)
    """The gateway's shared one."""
    name: str
    """What this peer registers as."""
    upstream_token: str = attrs.field(repr=False)
    """What the gateway presents when it calls this peer."""
    heartbeat: float
    """Seconds."""
    channel: bool
    """Whether to be called through a reverse channel."""
    base: str = attrs.field(init=False)
    """The URL without a trailing slash."""

    def __attrs_post_init__(self) -> None:
        try:
            object.__setattr__(self, "base", gateway_base(self.url))
        except ValueError as error:
            raise SettingsError(f"gateway {self.key}: {error}") from None


@final
class Gateway:
    """How things stand with a gateway; made by ``run_gateway``.

    It is also the credential of the channel, which reads name and token anew for each request.
    """

    def __init__(self, config: GatewayConfig, registration: Registration) -> None:
        self._registration = registration
        self.key = config.key
        self.channel = ChannelStatus(on_unauthorized=self.wake, on_change=self._tell)
        self._found: tuple[FoundPeer, ...] = ()
        self._awake = trio.Event()
        self._changed = trio.Event()

    @property
    def name(self) -> str:
        """What this peer is registered as."""
        return self._registration.name

    @property
    def token(self) -> str:
        """The credential of this peer at the gateway."""
        return self._registration.token

    @property
    def state(self) -> str:
        """``pending``, ``accepted`` or ``revoked``; empty before the first answer."""
        return self._registration.state

    @property
    def problem(self) -> str:
        """Why the last registration failed; empty if it did not."""
        return self._registration.problem

    @property
    def channel_open(self) -> bool:
        """Whether calls can come through the reverse channel."""
        return self.channel.open

    def peers(self) -> tuple[FoundPeer, ...]:
        """Return who can be called through the gateway, as it told last."""
        return self._found

    async def changed(self) -> None:
        """Wait until a beat is over, or the channel was opened or closed."""
        await self._changed.wait()

    def wake(self) -> None:
        """Let the next beat come now, unless the last one failed: then its pause is due."""
        if not self.problem:
            self._awake.set()

    def take(self, directory: GatewayDirectory) -> None:
        """Take note of who is there. A list without this peer, which is accepted, is no list."""
        if directory.has_own or self.state != ACCEPTED or directory.peers:
            self._found = directory.peers

    def beat_is_over(self) -> None:
        """Tell who waits for it."""
        self._tell()

    async def pause(self) -> None:
        """Wait for the next beat."""
        with trio.move_on_after(self._registration.delay):
            await self._awake.wait()
        self._awake = trio.Event()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


async def run_gateway(
    config: GatewayConfig,
    *,
    own_url: str,
    card: Callable[[], JsonObject],
    web: Web,
    home: Path | None,
    dispatch: Dispatch | None,
    rng: Random,
    offload: Offload = in_thread,
    task_status: trio.TaskStatus[Gateway] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Be registered at a gateway until cancelled, then take leave of it.

    Args:
        config: the gateway.
        own_url: where the gateway reaches this peer without a channel.
        card: returns this peer's card.
        web: the client.
        home: the state folder, where the token is kept; it is not kept if None.
        dispatch: answers what comes through the channel; no channel is opened if None.
        rng: source of jitter and of another name, if the wanted one is taken.
        offload: how blocking work is run.
        task_status: told at once, before anything was sent.
    """
    tokens = TokenFile(home, config.key, offload=offload)
    registration = Registration(
        name=config.name,
        shared_token=config.token,
        caller_token=await tokens.load(config.name),
        heartbeat=config.heartbeat,
        rng=rng,
    )
    gateway = Gateway(config, registration)
    visit = _Visit(
        config=config, own_url=own_url, card=card, web=web, tokens=tokens,
        registration=registration, gateway=gateway,
    )  # fmt: skip
    task_status.started(gateway)
    try:
        with plain_errors():
            async with trio.open_nursery() as nursery:
                channel: trio.CancelScope | None = None
                while True:
                    await visit.beat()
                    if gateway.state == REVOKED and channel is not None:
                        channel.cancel()
                        channel = None
                    elif registration.is_registered and dispatch is not None and channel is None:
                        channel = trio.CancelScope()
                        nursery.start_soon(_within, channel, visit.channel(dispatch, rng))
                    gateway.beat_is_over()
                    await gateway.pause()
    finally:
        with trio.move_on_after(DEREGISTER_SEC, shield=True):
            await visit.leave()


async def _within(scope: trio.CancelScope, channel: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await channel()


async def list_gateway(config: GatewayConfig, web: Web) -> tuple[FoundPeer, ...]:
    """Return who can be called through a gateway, without registering there.

    Raises:
        PeerError: it does not answer, or not with a list.
    """
    directory = await _directory(config, web, own_name="", token=config.token)
    return directory.peers


async def _directory(
    config: GatewayConfig, web: Web, *, own_name: str, token: str
) -> GatewayDirectory:
    url = config.base + DIRECTORY_PATH
    fetched = await fetch(
        web, "GET", url,
        headers=_bearer(config.token), seconds=REQUEST_SEC, limit=MAX_DIRECTORY_BYTES,
    )  # fmt: skip
    if fetched.status != 200:  # noqa: PLR2004 - HTTP
        raise PeerProtocolError(f"the directory answers HTTP {fetched.status}", url=url)
    directory = read_directory(
        fetched.body, key=config.key, base=config.base, own_name=own_name, token=token
    )
    if directory is None:
        raise PeerProtocolError("what answers there is no gateway", url=url)
    return directory


@final
@attrs.define(eq=False, kw_only=True)
class _Visit:
    """The requests of the register loop."""

    config: GatewayConfig
    own_url: str
    card: Callable[[], JsonObject]
    web: Web
    tokens: TokenFile
    registration: Registration
    gateway: Gateway
    told: tuple[str, ...] = ()
    """What the log says last."""
    kept: str = ""
    """The token in the file, as far as this process put it there."""

    async def beat(self) -> None:
        """Register or update, then read who is there."""
        step = Step.AGAIN
        while step is Step.AGAIN:
            step = await self._send()
        if step is Step.REGISTERED:
            await self._keep_token()
            await self._look()
        self._log()

    def channel(self, dispatch: Dispatch, rng: Random) -> Callable[[], Awaitable[None]]:
        """Return what keeps the reverse channel open."""
        gateway = self.gateway
        return partial(
            run_channel, self.web, self.config.base, gateway, dispatch, gateway.channel, rng=rng
        )

    async def leave(self) -> None:
        """Take the entry out of the gateway, and with it its token."""
        registration = self.registration
        if not registration.is_registered:
            return
        url = f"{self.config.base}/register?name={quote(registration.name, safe='')}"
        with suppress(PeerError):
            fetched = await fetch(
                self.web, "DELETE", url,
                headers=_bearer(registration.token), seconds=REQUEST_SEC, limit=MAX_REPLY_BYTES,
            )  # fmt: skip
            if fetched.status == 200:  # noqa: PLR2004 - HTTP
                await self.tokens.forget(registration.name)

    async def _send(self) -> Step:
        """Send one request of a beat, and take its answer.

        One that may be answered with a token is not broken off at once when the peer stops: the token
        is told once, and without it nobody could take the entry away.
        """
        if self.registration.request()[0] != "POST":
            return self.registration.answered(await self._register())
        step = Step.FAILED
        with plain_errors():
            async with trio.open_nursery() as nursery:
                shield = trio.CancelScope(shield=True)
                nursery.start_soon(_hurry_when_cancelled, shield)
                with shield:
                    step = self.registration.answered(await self._register())
                nursery.cancel_scope.cancel()
        return step

    async def _register(self) -> Reply:
        verb, token = self.registration.request()
        try:
            fetched = await fetch(
                self.web, verb, f"{self.config.base}/register",
                headers=(("content-type", "application/json"), *_bearer(token)),
                body=self._body(), seconds=REQUEST_SEC, limit=MAX_REPLY_BYTES,
            )  # fmt: skip
        except PeerError as error:
            return Reply(status=None, problem=str(error))
        return read_reply(fetched.status, fetched.body, parse_retry_after(fetched.retry_after))

    def _body(self) -> bytes:
        name = self.registration.name
        return dumps(
            {
                "name": name,
                "url": self.own_url,
                # A caller who sees the card must know whom to ask for.
                "card": {**self.card(), "name": name},
                "upstream_token": self.config.upstream_token,
            }
        )

    async def _keep_token(self) -> None:
        token = self.registration.caller_token
        if not token or token == self.kept:
            return
        try:
            await self.tokens.save(self.registration.name, token)
        except OSError as error:
            _log.warning("the token of the gateway is not kept", gateway=self.config.key,
                         reason=problem_of(error).value)  # fmt: skip
        self.kept = token

    async def _look(self) -> None:
        """Read who is there. A channel of which the gateway does not know is opened anew."""
        was_open = self.gateway.channel_open
        registration = self.registration
        try:
            directory = await _directory(
                self.config, self.web, own_name=registration.name, token=registration.token
            )
        except PeerError as error:
            _log.debug("gateway directory not read", gateway=self.config.key, reason=str(error))
            return
        self.gateway.take(directory)
        if was_open and directory.has_own and not directory.own_channel:
            self.gateway.channel.reopen()

    def _log(self) -> None:
        """Say how it stands, once for each change."""
        registration = self.registration
        now = tuple(self._standing())
        if now == self.told:
            return
        self.told = now
        fields = {"gateway": self.config.key, "name": registration.name}
        if registration.problem:
            _log.warning("not registered with the gateway", **fields, reason=registration.problem)
        else:
            _log.info("registered with the gateway", **fields, state=registration.state)

    def _standing(self) -> Iterator[str]:
        yield self.registration.problem
        yield self.registration.name
        yield self.registration.state


async def _hurry_when_cancelled(shield: trio.CancelScope) -> None:
    """Wait to be cancelled, and give what is shielded from it a little longer."""
    try:
        await trio.sleep_forever()
    finally:
        shield.deadline = trio.current_time() + DEREGISTER_SEC


def _bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)
