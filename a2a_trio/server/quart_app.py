"""A Quart application that is also an agent.

The agent's own routes never enter Quart: they go straight to the same ``AsgiApp`` that the
listener serves. Every other route is the user's, with all that Quart offers.
"""

from typing import TYPE_CHECKING, Any, cast

from quart_trio import QuartTrio

from a2a_trio.server.asgi import AsgiApp, Receive, Scope, Send

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope as HypercornScope

__all__ = ["AgentQuart", "quart_app"]


class AgentQuart(QuartTrio):
    """A QuartTrio that answers an agent's routes itself; see ``quart_app``."""

    agent: AsgiApp

    async def __call__(
        self,
        scope: "HypercornScope",
        receive: "ASGIReceiveCallable",
        send: "ASGISendCallable",
    ) -> None:
        """Serve one scope: the agent's by the agent, the lifespan by both, the rest by Quart."""
        plain = cast("Scope", scope)
        if self.agent.owns(plain):
            await self.agent(plain, cast("Receive", receive), cast("Send", send))
        elif plain["type"] == "lifespan":
            async with self.agent.services():
                await super().__call__(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def quart_app(agent: AsgiApp, *, import_name: str = "a2a_trio", **options: Any) -> AgentQuart:
    """Return a Quart application with an agent in it.

    Add routes to it like to any other; the agent's paths (``server.rpcPath``, the well-known
    cards, ``/``, ``/health``, ``/ready``, ``/metrics``) are taken. It can be mounted below a
    prefix, which arrives as ``root_path``.

    Args:
        agent: the endpoint; its ``services`` run for as long as the lifespan of the application.
            Where no lifespan is run, as for a mounted application, open them around the server:
            ``async with app.agent.services(): ...``.
        import_name: for Quart, where templates and static files are looked for.
        options: further arguments of ``Quart``.
    """
    app = AgentQuart(import_name, **options)
    app.agent = agent
    # Quart would end a stream of the user's own after a minute.
    app.config["RESPONSE_TIMEOUT"] = None
    return app
