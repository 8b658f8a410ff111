"""The settings of the inbound server: who may call, what it promises, what bounds it."""

from collections.abc import Mapping
from typing import final

import attrs

from a2a_trio.config.fields import (
    TRUSTED_PATTERN,
    flag,
    integer,
    names,
    number,
    secret,
    skills,
    text,
    tokens,
)
from a2a_trio.wire.agent_card import AgentSkill

_YEAR = 31_536_000
_MANY = 1_000_000
_GIB = 1 << 30


@final
@attrs.frozen(kw_only=True)
class ServerSettings:
    """The inbound server. Nothing here but ``skills`` may come from a project file."""

    # --- where it listens and what it says about itself
    enabled: bool = flag(
        False, env="A2A_SERVER_ENABLED",
        doc="Whether a program that may serve or not, serves. `a2a-trio serve`, `serve` and `open_peer`"
        " are asked to and always do.",
    )  # fmt: skip
    port: int = integer(
        9910, 0, 65_535, "Port to listen on; 0 lets the system choose.", env="A2A_PORT"
    )
    port_fallback: int = integer(
        10, 0, 1000, env="A2A_PORT_FALLBACK",
        doc="Consecutive ports to try when `port` is busy, before the system chooses one.",
    )  # fmt: skip
    host: str = text(
        "127.0.0.1", env="A2A_HOST", pattern=r"[A-Za-z0-9._:%\[\]-]{1,255}",
        doc="Address to bind. Without a token only a loopback address is bound, whatever is set here.",
    )  # fmt: skip
    workspace: str = text(
        "",
        "Folder that agents are told to work in (`task.workspace`), and that the card names; the"
        " current one if empty.",
        env="A2A_WORKSPACE",
    )
    agent_name: str = text(
        "", "Name on the agent card; derived from the host name if empty.", env="A2A_AGENT_NAME",
        pattern=r"\S(?:[^\r\n]{0,98}\S)?",
    )  # fmt: skip
    public_url: str = text(
        "", "URL on the agent card when callers reach this peer through a proxy.",
        env="A2A_PUBLIC_URL", pattern=r"https?://[!-~]{1,2000}",
    )  # fmt: skip
    skills: tuple[AgentSkill, ...] = skills(
        "Skills on the agent card; found out from the agent if empty."
    )
    rpc_path: str = text("/", "Path of the JSON-RPC endpoint.", pattern=r"/[A-Za-z0-9._~/-]{0,200}")
    tls_cert_file: str = text("", "Certificate chain (PEM).", env="A2A_TLS_CERT_FILE")
    tls_key_file: str = text("", "Private key (PEM).", env="A2A_TLS_KEY_FILE")
    card_compat: bool = flag(False, "Merge the members of protocol 0.3 into the well-known card.")
    strict_version: bool = flag(
        False, "Refuse requests without an `A2A-Version` header, as the specification says."
    )

    # --- who may call
    shared_token: str = secret("Bearer token that any caller may present.", env="A2A_BEARER_TOKEN")
    peer_tokens: Mapping[str, tuple[str, ...]] = tokens(
        "Bearer tokens by caller name; several tokens per name allow rotation. "
        "The variable reads `name:token,name:token`.",
        env="A2A_PEER_TOKENS",
    )
    trusted_peers: tuple[str, ...] = names(
        "If not empty, only these authenticated callers are admitted: names of `server.peerTokens`,"
        " `gw/<key>` for what comes through a gateway, `ip:<address>` for callers with the shared token.",
        env="A2A_TRUSTED_PEERS", pattern=TRUSTED_PATTERN,
    )  # fmt: skip
    allow_all_users: bool = flag(
        False, "Admit every authenticated caller despite `trustedPeers` (development only).",
        env="A2A_ALLOW_ALL_USERS",
    )  # fmt: skip
    allowed_hosts: tuple[str, ...] = names(
        "Host names that requests may be addressed to, besides loopback and the bound address.",
        env="A2A_ALLOWED_HOSTS",
    )
    allowed_origins: tuple[str, ...] = names(
        "Web origins that may call from a browser, besides loopback.", env="A2A_ALLOWED_ORIGINS"
    )
    trusted_proxies: tuple[str, ...] = names(
        "Addresses or networks whose forwarded headers are believed.", env="A2A_TRUSTED_PROXIES"
    )

    # --- how much
    max_concurrent: int = integer(
        3, 1, 10_000, "Runs at the same time, blocking and detached together.",
        env="A2A_MAX_CONCURRENT",
    )  # fmt: skip
    rate_limit_per_min: int = integer(
        60, 1, _MANY, "Requests per minute and caller.", env="A2A_RATE_LIMIT"
    )
    flood_limit_per_min: int = integer(
        600, 1, _MANY, "Requests per minute and address, before authentication."
    )
    max_pingpong_turns: int = integer(
        5, 1, 20, "Turns per caller and context before further ones are refused.",
        env="A2A_MAX_PINGPONG_TURNS",
    )  # fmt: skip
    anti_loop_idle_sec: float = number(
        3600, 1, _YEAR, "Idle time after which a context may take turns again.", unit="seconds"
    )
    max_delegation_depth: int = integer(
        8, 1, 64, "Longest chain of peers that a task may have been handed through."
    )
    max_body_bytes: int = integer(5_242_880, 1, _GIB, "Largest request body.", unit="bytes")

    # --- how long
    reply_timeout_sec: float = number(
        300, 0, _YEAR, "Longest run of a blocking or streaming send; 0 is no limit.",
        unit="seconds", env="A2A_REPLY_TIMEOUT",
    )  # fmt: skip
    async_timeout_sec: float = number(
        86_400, 0, _YEAR, "Longest run of a detached send; 0 is no limit.",
        unit="seconds", env="A2A_ASYNC_TIMEOUT",
    )  # fmt: skip
    input_timeout_sec: float = number(
        86_400, 0, _YEAR, "How long a task waits for its caller's answer; 0 is no limit.",
        unit="seconds",
    )  # fmt: skip
    cancel_grace_sec: float = number(
        5, 0, 3600, "How long a cancelled run may clean up.", unit="seconds"
    )
    drain_grace_sec: float = number(
        1, 0, 3600, "How long open requests may finish when the server stops.", unit="seconds"
    )
    keep_alive_sec: float = number(
        15, 0.01, 3600, "Interval of comments on a silent stream.", unit="seconds"
    )
    dedup_window_sec: float = number(
        600, 0, 86_400, unit="seconds",
        doc="How long a repeated `Idempotency-Key` returns the first task; 0 turns it off.",
    )  # fmt: skip
    dedup_message_ids: bool = flag(
        False, "Treat a repeated messageId like a repeated `Idempotency-Key`."
    )
    stream_disconnect: str = text(
        "continue", "What happens to the run when a streaming caller leaves.",
        choices=("continue", "cancel"),
    )  # fmt: skip

    # --- what is kept
    max_tasks: int = integer(500, 1, _MANY, "Tasks in memory; the oldest ended ones leave first.")
    task_ttl_sec: float = number(
        86_400, 0, _YEAR, "How long an ended task is kept; 0 is until there is no room.",
        unit="seconds",
    )  # fmt: skip
    max_task_bytes: int = integer(16_777_216, 1, _GIB, "Largest content of one task.", unit="bytes")
    max_task_events: int = integer(1000, 1, _MANY, "Events of one task kept for replay.")
    max_history: int = integer(200, 1, 100_000, "Messages kept in the history of one task.")
    max_parked: int = integer(100, 1, _MANY, "Tasks that wait for their callers at the same time.")
    max_inbox: int = integer(16, 1, 10_000, "Unread messages to one running task.")
    max_subscribers: int = integer(256, 1, 100_000, "Open streams.")
    max_subscribers_per_task: int = integer(16, 1, 10_000, "Open streams of one task.")
    subscriber_buffer: int = integer(
        256, 1, 100_000, "Events that a slow stream may be behind before it is cut."
    )

    # --- records
    child_transcripts: bool = flag(
        True,
        "Keep a transcript of every run in `a2a_sessions` of the state directory.",
        env="A2A_CHILD_TRANSCRIPTS",
    )
    child_transcript_retention_days: float = number(
        30, 0, 36_500, "Age at which transcripts are deleted when the server starts; 0 keeps them.",
        unit="days", env="A2A_CHILD_TRANSCRIPT_RETENTION_DAYS",
    )  # fmt: skip
    audit_max_bytes: int = integer(
        16_777_216, 1, _GIB, "Size at which the audit log is rotated.", unit="bytes"
    )
    audit_keep: int = integer(5, 0, 1000, "Rotated audit logs that are kept.")
