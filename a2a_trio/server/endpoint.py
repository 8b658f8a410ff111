"""From an HTTP request to its answer: verb, path, admission, then the right hand.

The order of checks is fixed, since each answer may reveal only what its caller may know: verb and
path, admission (before the body is read), body limit, JSON-RPC envelope, method, rate, version,
parameters, capability, operation.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, final

import attrs
import trio

from a2a_trio._log import get_logger
from a2a_trio.config.schema import Settings
from a2a_trio.errors import (
    InternalError,
    InvalidRequestError,
    UnauthorizedError,
    VersionNotSupportedError,
)
from a2a_trio.rules.admission import Admission, Caller, Purpose, Refused, RequestFacts
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.server import answers
from a2a_trio.server.calls import Operations
from a2a_trio.server.cards import CARD_PATH, OLD_CARD_PATH, Cards
from a2a_trio.server.http import HttpRequest, HttpResponse
from a2a_trio.server.metrics import OK, Metrics, outcome_of
from a2a_trio.server.rpc import Rpc, requested_version
from a2a_trio.server.trace import Recorder
from a2a_trio.wire import codec
from a2a_trio.wire.choosing import asked_version
from a2a_trio.wire.extensions import IDENTITY_HEADER, LEGACY_PROTOCOL_VERSION
from a2a_trio.wire.methods import Dialect

__all__ = ["Endpoint"]

_log = get_logger(__name__)

_PREFLIGHT: Final = "preflight"
_NO_ROUTE: Final = "other"
_INVALID: Final = outcome_of(InvalidRequestError())
_RPC: Final = "rpc"
_HEALTH: Final = "health"
_READY: Final = "ready"
_METRICS: Final = "metrics"
_CARD: Final = "card"

_NO_STORE: Final = (("cache-control", "no-store"),)

_PAGES: Final[Mapping[str, tuple[str, Purpose]]] = {
    "/": (_HEALTH, Purpose.OPEN),
    "/health": (_HEALTH, Purpose.OPEN),
    "/ready": (_READY, Purpose.OPEN),
    "/metrics": (_METRICS, Purpose.METRICS),
    CARD_PATH: (_CARD, Purpose.CARD),
    OLD_CARD_PATH: (_CARD, Purpose.CARD),
}


@final
class Endpoint:
    """Answers every request to one agent.

    Args:
        operations: what calls do.
        admission: who may call.
        cards: the agent card, which also names the agent in ``/health``.
        settings: ``server.rpcPath``, limits and switches.
        metrics: counters, also served at ``/metrics``.
        audit: takes an entry for the request and one for the outcome of every call; must neither
            block nor raise.
        redact: makes message text fit for the audit log.
        now: monotonic seconds.
        utc: the present instant.
        ready: False while the server drains or cannot work; only ``/ready`` asks.
    """

    def __init__(
        self,
        operations: Operations,
        *,
        admission: Admission,
        cards: Cards,
        settings: Settings,
        metrics: Metrics,
        audit: Callable[[AuditEntry], None],
        redact: Callable[[str], str],
        now: Callable[[], float],
        utc: Callable[[], datetime],
        ready: Callable[[], bool],
    ) -> None:
        self._admission: Final = admission
        self._cards: Final = cards
        self._metrics: Final = metrics
        self._now: Final = now
        self._ready: Final = ready
        self._rpc_path: Final = _normal(settings.server.rpc_path)
        recorder = Recorder(metrics=metrics, audit=audit, redact=redact, now=now, utc=utc)
        self._rpc: Final = Rpc(
            operations=operations,
            admission=admission,
            cards=cards,
            settings=settings,
            recorder=recorder,
        )

    def owns(self, path: str) -> bool:
        """Return whether a path, without any mount prefix, is answered by this endpoint."""
        path = _normal(path)
        return path == self._rpc_path or path in _PAGES

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer one request.

        Raises nothing of its own: an unexpected exception is logged once and answered with
        ``InternalError``. Whoever gets an ``EventStream`` closes it.

        Cancellation: the caller has gone; what its call started goes on.
        """
        try:
            return await self._route(request)
        except Exception:  # noqa: BLE001 - the outermost place where a defect is answered
            _log.exception("request failed", method=request.method)
            return answers.failure(InternalError())
        except BaseExceptionGroup as group:
            # A nursery further in may pair our defect with the cancellation of a caller that left.
            cancelled, defects = group.split(trio.Cancelled)
            if cancelled is None or defects is None:
                raise
            _log.error("request failed", method=request.method, exc_info=defects)
            raise cancelled from None

    async def _route(self, request: HttpRequest) -> HttpResponse:
        path = _normal(request.path)
        verb = request.method
        verbs = self._verbs(path)
        if not verbs or (verb == "POST" and path != self._rpc_path):
            self._metrics.request(_NO_ROUTE, _INVALID, 0.0)
            return answers.not_found()
        if verb not in verbs:
            self._metrics.request(_NO_ROUTE, _INVALID, 0.0)
            return answers.not_allowed(verbs)
        if verb == "POST":
            return await self._post(request)
        if verb == "OPTIONS":
            return self._preflight(request, path, verbs)
        response = self._get(request, path)
        return answers.without_body(response) if verb == "HEAD" else response

    def _verbs(self, path: str) -> tuple[str, ...]:
        post = ("POST",) if path == self._rpc_path else ()
        get = ("GET", "HEAD") if path in _PAGES else ()
        return (*get, *post, "OPTIONS") if get or post else ()

    async def _post(self, request: HttpRequest) -> HttpResponse:
        facts = _facts(request, Purpose.RPC)
        verdict = self._admission.admit(facts, self._now())
        if isinstance(verdict, Caller):
            response = await self._rpc.call(request, verdict)
        else:
            # Nobody calls anonymously, whatever the table of admission says.
            refused = Refused(UnauthorizedError()) if verdict is None else verdict
            response = self._refused(_RPC, refused)
        return self._shared(response, facts)

    def _get(self, request: HttpRequest, path: str) -> HttpResponse:
        label, purpose = _PAGES[path]
        facts = _facts(request, purpose)
        started = self._now()
        verdict = self._admission.admit(facts, started)
        if isinstance(verdict, Refused):
            return self._shared(self._refused(label, verdict), facts)
        if label == _CARD:
            old = path == OLD_CARD_PATH or _asks_for_v03(request)
            response = self._cards.answer(
                request.headers,
                dialect=Dialect.V03 if old else Dialect.V1,
                anonymous=verdict is None,
            )
        elif label == _METRICS:
            body, content_type = self._metrics.render()
            headers = (("content-type", content_type), *_NO_STORE)
            response = HttpResponse(status=200, headers=headers, body=body)
        elif label == _READY and not self._ready():
            response = answers.unready()
        else:
            response = self._health()
        self._metrics.request(label, OK, self._now() - started)
        return self._shared(response, facts)

    def _health(self) -> HttpResponse:
        body = codec.dumps({"status": "ok", "agent": self._cards.card.name})
        return HttpResponse(
            status=200,
            headers=(("content-type", answers.JSON), *answers.service_headers(), *_NO_STORE),
            body=body,
        )

    def _preflight(self, request: HttpRequest, path: str, verbs: tuple[str, ...]) -> HttpResponse:
        purpose = Purpose.RPC if path == self._rpc_path else _PAGES[path][1]
        facts = _facts(request, purpose)
        verdict = self._admission.admit(facts, self._now())
        if isinstance(verdict, Refused):
            return self._refused(_PREFLIGHT, verdict)
        self._metrics.request(_PREFLIGHT, OK, 0.0)
        allow = ("allow", ", ".join(verbs))
        return HttpResponse(status=204, headers=(allow, *self._admission.cors(facts)))

    def _refused(self, label: str, refused: Refused) -> HttpResponse:
        self._metrics.request(label, outcome_of(refused.error), 0.0)
        return answers.failure(refused.error, extra=refused.headers)

    def _shared(self, response: HttpResponse, facts: RequestFacts) -> HttpResponse:
        """Let a script of an accepted origin read the answer, and caches tell origins apart."""
        if not facts.origins and facts.purpose is Purpose.RPC:
            return response
        return attrs.evolve(response, headers=(*response.headers, *self._admission.cors(facts)))


def _normal(path: str) -> str:
    """Return a path without its one trailing slash; the root stays ``/``."""
    return path[:-1] if len(path) > 2 and path.endswith("/") else path or "/"  # noqa: PLR2004 - "//" is another path than "/"


def _asks_for_v03(request: HttpRequest) -> bool:
    """Return whether a card is wanted in the older spelling; an unknown version gets today's."""
    try:
        return asked_version(requested_version(request)) == LEGACY_PROTOCOL_VERSION
    except VersionNotSupportedError:
        return False


def _facts(request: HttpRequest, purpose: Purpose) -> RequestFacts:
    headers = request.headers
    return RequestFacts(
        purpose=purpose,
        verb=request.method,
        hosts=headers.all("host"),
        origins=headers.all("origin"),
        content_types=headers.all("content-type"),
        authorizations=headers.all("authorization"),
        identities=headers.all(IDENTITY_HEADER),
        forwarded_for=headers.all("x-forwarded-for"),
        client=request.client,
    )
