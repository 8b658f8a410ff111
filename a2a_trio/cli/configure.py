"""The arguments of each command; ``parser`` says which command takes which."""

import argparse

from a2a_trio.cli import arguments
from a2a_trio.rules.directory import Source


def serve(parser: argparse.ArgumentParser) -> None:
    """Add what ``serve`` takes."""
    parser.add_argument(
        "--agent",
        default="echo",
        metavar="AGENT",
        help="echo, or module:attribute of an agent function (default: %(default)s)",
    )
    parser.add_argument("--host", help="address to listen on (default: the setting server.host)")
    parser.add_argument(
        "--port", type=arguments.port, help="port to listen on; 0 lets the system choose"
    )
    parser.add_argument(
        "--port-fallback",
        type=arguments.count,
        metavar="N",
        help="ports to try after a busy one before the system chooses",
    )
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="folder that agents work in (default: the setting server.workspace, else this one)",
    )
    arguments.add_settings(parser)
    arguments.add_token(parser, "bearer token that callers must present")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        help="least severe log line to show (default: the setting log.level)",
    )
    parser.add_argument(
        "--log-json", action="store_true", default=None, help="log lines as JSON objects"
    )
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no hints, warnings or inbound activity on standard error, only the log",
    )


def discover(parser: argparse.ArgumentParser) -> None:
    """Add what ``discover`` takes."""
    arguments.add_peer(parser)


def card(parser: argparse.ArgumentParser) -> None:
    """Add what ``card`` takes."""
    parser.add_argument("--url", help="address to show in the card (default: from the settings)")
    arguments.add_settings(parser)
    arguments.add_output(parser)


def send(parser: argparse.ArgumentParser) -> None:
    """Add what ``send`` takes."""
    arguments.add_peer(parser)
    parser.add_argument("text", metavar="TEXT", help="what to say; - reads standard input")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--stream", action="store_true", help="show the reply while it is made")
    how.add_argument(
        "--detach", action="store_true", help="return the task id at once; the task goes on"
    )
    parser.add_argument("--context", metavar="ID", default="", help="conversation to continue")
    parser.add_argument(
        "--task", metavar="ID", default="", help="task to answer that waits for input"
    )


def status(parser: argparse.ArgumentParser) -> None:
    """Add what ``status`` takes."""
    arguments.add_peer(parser)
    arguments.add_task(parser)
    parser.add_argument(
        "--wait",
        type=arguments.seconds,
        metavar="SECONDS",
        help="wait up to this long for the task to end or to ask something",
    )


def cancel(parser: argparse.ArgumentParser) -> None:
    """Add what ``cancel`` takes."""
    arguments.add_peer(parser)
    arguments.add_task(parser)


def tasks(parser: argparse.ArgumentParser) -> None:
    """Add what ``tasks`` takes."""
    arguments.add_peer(parser)
    parser.add_argument(
        "--context", metavar="ID", default="", help="only tasks of this conversation"
    )
    parser.add_argument(
        "--state",
        type=arguments.state,
        choices=arguments.STATES,
        metavar="STATE",
        help=f"only tasks in this state: {', '.join(s.short for s in arguments.STATES)}",
    )
    parser.add_argument(
        "--after",
        type=arguments.moment,
        metavar="TIME",
        help="only tasks changed at or after this time",
    )
    parser.add_argument(
        "--page-size", type=arguments.count, metavar="N", help="tasks per page, 1 to 100"
    )
    parser.add_argument("--page-token", metavar="TOKEN", default="", help="page to show")
    parser.add_argument("--all", action="store_true", help="all pages")


def peers(parser: argparse.ArgumentParser) -> None:
    """Add what ``peers`` takes."""
    parser.add_argument(
        "--capability", metavar="NAME", default="", help="only those that can do this"
    )
    parser.add_argument(
        "--source",
        choices=tuple(source.value for source in Source),
        default="",
        help="only those found in this way",
    )
    parser.add_argument(
        "--wait",
        type=arguments.seconds,
        metavar="SECONDS",
        default=2.0,
        help="how long to listen to the network, if mDNS is on (default: %(default)g)",
    )
    arguments.add_settings(parser)
    arguments.add_output(parser)


def setting(parser: argparse.ArgumentParser) -> None:
    """Add what a command about one setting takes."""
    arguments.add_settings(parser)
    parser.add_argument("key", metavar="KEY", help="dotted name, such as server.port")
    arguments.add_output(parser)


def setting_and_value(parser: argparse.ArgumentParser) -> None:
    """Add what ``config set`` takes."""
    arguments.add_settings(parser)
    parser.add_argument("key", metavar="KEY", help="dotted name, such as server.port")
    parser.add_argument(
        "value",
        metavar="VALUE",
        help="JSON, or plain text for a text; - reads it from standard input, as for secrets",
    )
    arguments.add_output(parser)


def settings(parser: argparse.ArgumentParser) -> None:
    """Add what a command about all settings takes."""
    arguments.add_settings(parser)
    arguments.add_output(parser)


def shell(parser: argparse.ArgumentParser) -> None:
    """Add what ``completion`` takes."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")
