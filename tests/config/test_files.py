"""Files of the configuration: found, doubted, refused, and written in one step."""

import json
import os
import stat
from pathlib import Path

import pytest

from a2a_trio.config.files import (
    MAX_BYTES,
    permission_problem,
    read_root,
    read_secret_file,
    read_text,
    rewrite,
    state_home,
)
from a2a_trio.config.load import LoadedSettings, load_settings
from a2a_trio.errors import SettingsError

TOKEN = "token-of-sixteen-characters"


def write(path: Path, content: object, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


def load(home: Path, **environ: str) -> LoadedSettings:
    return load_settings(environ=environ, home=home)


# --- where ----------------------------------------------------------------------------------


def test_home_is_given_by_a_variable(tmp_path: Path) -> None:
    """``A2A_HOME``, with ``~`` for the home directory."""
    assert state_home({"A2A_HOME": str(tmp_path)}) == tmp_path
    assert state_home({"A2A_HOME": "~/.pi/agent", "HOME": "/h"}) == Path("/h/.pi/agent")
    assert state_home({"A2A_HOME": " "}).name == "a2a-trio"
    assert state_home({}).is_absolute()
    with pytest.raises(SettingsError, match="A2A_HOME must be an absolute path"):
        state_home({"A2A_HOME": "relative"})


def test_home_variable_finds_the_file(tmp_path: Path) -> None:
    """The settings file is ``settings.json`` there, other members of it are left alone."""
    file = write(tmp_path / "settings.json", {"theme": "dark", "a2a": {"server": {"port": 1}}})
    loaded = load_settings(environ={"A2A_HOME": str(tmp_path)})
    assert loaded.settings.server.port == 1
    assert (loaded.home, loaded.settings_file) == (tmp_path, file)
    assert loaded.warnings == ()


def test_named_file_must_exist_and_replaces_the_usual_one(tmp_path: Path) -> None:
    """``--settings FILE``."""
    write(tmp_path / "settings.json", {"a2a": {"server": {"port": 1}}})
    other = write(tmp_path / "other.json", {"a2a": {"server": {"maxTasks": 7}}})
    loaded = load_settings(environ={}, home=tmp_path, settings_file=other)
    assert (loaded.settings.server.port, loaded.settings.server.max_tasks) == (9910, 7)
    with pytest.raises(SettingsError, match=r"none\.json: there is no such file"):
        load_settings(environ={}, home=tmp_path, settings_file=tmp_path / "none.json")


def test_project_files(tmp_path: Path) -> None:
    """``.a2a`` counts more than ``.pi``, and both more than the operator's file."""
    home, project = tmp_path / "home", tmp_path / "project"
    write(home / "settings.json", {"a2a": {"timeouts": {"send": 1, "async": 1, "stream": 1}}})
    write(project / ".pi" / "settings.json", {"a2a": {"timeouts": {"send": 2, "async": 2}}}, 0o644)
    write(project / ".a2a" / "settings.json", {"a2a": {"timeouts": {"send": 3}}}, 0o644)
    loaded = load_settings(environ={}, home=home, project=project)
    timeouts = loaded.settings.timeouts
    assert (timeouts.send, timeouts.async_, timeouts.stream) == (3, 2, 1)
    assert loaded.sources["timeouts.send"] == str(project / ".a2a" / "settings.json")
    assert loaded.warnings == ()
    assert load_settings(environ={}, home=home).settings.timeouts.send == 1


def test_operators_file_is_not_taken_for_a_project_file(tmp_path: Path) -> None:
    """When the working directory holds the state directory."""
    write(tmp_path / ".a2a" / "settings.json", {"a2a": {"server": {"port": 1}}})
    loaded = load_settings(environ={}, home=tmp_path / ".a2a", project=tmp_path)
    assert loaded.settings.server.port == 1
    assert loaded.warnings == ()


def test_env_file_of_the_operator(tmp_path: Path) -> None:
    """``.env.local`` in the state directory adds to the environment and counts less than it."""
    path = write(
        tmp_path / ".env.local",
        "# c\nexport A2A_PORT=1\nA2A_HOST='::1'\nPATH=/evil\nA2A_RATE_LIMIT = \"5\"\nbroken\n",
    )
    loaded = load(tmp_path, A2A_PORT="2", A2A_HOST="")
    server = loaded.settings.server
    assert (server.port, server.host, server.rate_limit_per_min) == (2, "::1", 5)
    assert loaded.sources["server.host"] == f"environment A2A_HOST ({path})"
    assert loaded.sources["server.port"] == "environment A2A_PORT"


def test_env_file_of_a_project_is_not_read(tmp_path: Path) -> None:
    """A repository sets no variable."""
    write(tmp_path / "project" / ".env.local", "A2A_SERVER_ENABLED=true\n")
    write(tmp_path / "project" / ".a2a" / ".env.local", "A2A_SERVER_ENABLED=true\n")
    loaded = load_settings(environ={}, home=tmp_path / "home", project=tmp_path / "project")
    assert not loaded.settings.server.enabled


# --- what is wrong with a file --------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b'{"a2a": {',
            "is not valid JSON: something that is not a name in quotes at line 1, column 10",
        ),
        (b"[]", "must hold a JSON object"),
        (b'{"a2a": 5}', '"a2a" must be an object'),
        (b"\xff\xfe{\x00}\x00", "is UTF-16; it must be UTF-8"),
        (b'{"a2a": "\xe4"}', "is not UTF-8 (byte 9)"),
        (b"\x00" * 10, "is not valid JSON"),
        (b" " * (MAX_BYTES + 1), f"it is larger than {MAX_BYTES} bytes"),
        (b"[" * 5000, "more than 32 levels"),
    ],
)
def test_file_that_is_no_settings_file(tmp_path: Path, content: bytes, message: str) -> None:
    """Each with the file's name and what is wrong."""
    path = write(tmp_path / "settings.json", content)
    with pytest.raises(SettingsError) as caught:
        load(tmp_path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_truncated_file_does_not_show_its_secrets(tmp_path: Path) -> None:
    """The error names the place only."""
    write(tmp_path / "settings.json", f'{{"a2a": {{"server": {{"sharedToken": "{TOKEN}"')
    with pytest.raises(SettingsError) as caught:
        load(tmp_path)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xef\xbb\xbf"])
def test_empty_file_is_told(tmp_path: Path, content: bytes) -> None:
    """An empty file is most likely a mistake, and stops nothing."""
    path = write(tmp_path / "settings.json", content)
    assert load(tmp_path).warnings == (f"{path}: is empty",)


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    """Some editors write one."""
    write(tmp_path / "settings.json", b'\xef\xbb\xbf{"a2a": {"server": {"port": 1}}}')
    assert load(tmp_path).settings.server.port == 1


def test_missing_a2a_object_is_told(tmp_path: Path) -> None:
    """A common mistake: the keys at the top."""
    write(tmp_path / "settings.json", {"server": {"port": 1}})
    loaded = load(tmp_path)
    assert loaded.settings.server.port == 9910
    assert 'has no "a2a" object' in loaded.warnings[0]


def test_names_given_twice_are_told(tmp_path: Path) -> None:
    """The last one counts."""
    write(tmp_path / "settings.json", '{"a2a": {"server": {"port": 1, "port": 2}}}')
    loaded = load(tmp_path)
    assert loaded.settings.server.port == 2
    assert '"port" is given twice' in loaded.warnings[0]


@pytest.mark.parametrize(("mode", "doubted"), [(0o644, True), (0o640, True), (0o600, False)])
def test_secrets_that_others_can_read(tmp_path: Path, mode: int, doubted: bool) -> None:  # noqa: FBT001 - a table
    """A warning, only if the file holds secrets."""
    path = write(tmp_path / "settings.json", {"a2a": {"server": {"sharedToken": TOKEN}}}, mode)
    warning = f"{path}: holds secrets and other users can read it; use chmod 600"
    assert load(tmp_path).warnings == ((warning,) if doubted else ())
    write(path, {"a2a": {"server": {"port": 1}}}, mode)
    assert load(tmp_path).warnings == ()


def test_file_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    """Anybody could have put a token into it."""
    write(tmp_path / "settings.json", {}, 0o666)
    with pytest.raises(SettingsError, match="every user may write it"):
        load(tmp_path)


def stat_of(mode: int, owner: int) -> os.stat_result:
    return os.stat_result((mode, 1, 1, 1, owner, 0, 10, 0, 0, 0))


@pytest.mark.parametrize(
    ("owner", "user", "problem"),
    [(1000, 1000, None), (0, 1000, None), (1001, 1000, "another user (id 1001)"), (1001, 0, None)],
)
def test_owner(owner: int, user: int, problem: str | None) -> None:
    """A file of another user is refused; root's is not, nor is any refused by root."""
    found = permission_problem(stat_of(stat.S_IFREG | 0o600, owner), user)
    assert (found is None) == (problem is None)
    assert problem is None or problem in (found or "")


def test_directory_and_fifo_are_refused(tmp_path: Path) -> None:
    """And a FIFO without a writer blocks nobody."""
    (tmp_path / "settings.json").mkdir()
    with pytest.raises(SettingsError, match="not a regular file"):
        load(tmp_path)
    (tmp_path / "settings.json").rmdir()
    os.mkfifo(tmp_path / "settings.json")
    with pytest.raises(SettingsError, match="not a regular file"):
        load(tmp_path)


def test_link_of_the_operator_is_followed(tmp_path: Path) -> None:
    """People keep their settings in other places."""
    target = write(tmp_path / "dotfiles" / "a2a.json", {"a2a": {"server": {"port": 1}}})
    (tmp_path / "settings.json").symlink_to(target)
    assert load(tmp_path).settings.server.port == 1
    (tmp_path / "settings.json").unlink()
    (tmp_path / "settings.json").symlink_to(tmp_path / "settings.json")
    with pytest.raises(SettingsError, match="cannot be used"):
        load(tmp_path)


def test_links_in_a_project_are_ignored(tmp_path: Path) -> None:
    """They could make error texts tell of files elsewhere."""
    target = write(tmp_path / "secret.json", {"a2a": {"timeouts": {"send": 5}}})
    project = tmp_path / "project"
    (project / ".a2a").mkdir(parents=True)
    (project / ".a2a" / "settings.json").symlink_to(target)
    (tmp_path / "real").mkdir()
    write(tmp_path / "real" / "settings.json", {"a2a": {"timeouts": {"send": 6}}})
    (project / ".pi").symlink_to(tmp_path / "real")
    loaded = load_settings(environ={}, home=tmp_path / "home", project=project)
    assert loaded.settings.timeouts.send == 360_000
    assert loaded.warnings == (
        f"{project / '.pi' / 'settings.json'}: ignored: its folder is a symbolic link",
        f"{project / '.a2a' / 'settings.json'}: ignored: it is a symbolic link",
    )


def test_nothing_at_all(tmp_path: Path) -> None:
    """No file anywhere is the usual case of a first run."""
    loaded = load_settings(environ={}, home=tmp_path / "none", project=tmp_path / "none")
    assert loaded.warnings == ()
    assert set(loaded.sources.values()) == {"default"}


# --- secrets elsewhere ----------------------------------------------------------------------


def test_secret_in_a_file(tmp_path: Path) -> None:
    """Relative to the settings file; white space around it is not part of it."""
    write(tmp_path / "shared.token", f"  {TOKEN}\n")
    write(
        tmp_path / "settings.json", {"a2a": {"server": {"sharedToken": {"file": "shared.token"}}}}
    )
    assert load(tmp_path).settings.server.shared_token == TOKEN


def test_secret_in_a_variable(tmp_path: Path) -> None:
    """Any variable, named in the file."""
    write(tmp_path / "settings.json", {"a2a": {"server": {"sharedToken": {"env": "MY_TOKEN"}}}})
    assert load(tmp_path, MY_TOKEN=TOKEN).settings.server.shared_token == TOKEN
    with pytest.raises(
        SettingsError,
        match=r"sharedToken cannot be read: the environment variable MY_TOKEN is not set",
    ):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (None, 0, "there is no file"),
        (b"", 0o600, "is empty"),
        (b"\xff", 0o600, "is not UTF-8"),
        (b"x" * 20_000, 0o600, "larger than"),
        (b"x", 0o666, "every user may write it"),
    ],
)
def test_secret_file_that_cannot_be_used(
    tmp_path: Path, content: bytes | None, mode: int, message: str
) -> None:
    """Each with a clear reason."""
    path = tmp_path / "token"
    if content is not None:
        write(path, content, mode)
    with pytest.raises(ValueError, match=message):
        read_secret_file(path)


# --- writing --------------------------------------------------------------------------------


def test_written_file_is_private(tmp_path: Path) -> None:
    """0600 in a folder of 0700, whatever the umask."""
    old = os.umask(0)
    try:
        rewrite(tmp_path / "new" / "deep" / "settings.json", lambda _: "{}")
    finally:
        os.umask(old)
    path = tmp_path / "new" / "deep" / "settings.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_failed_change_leaves_the_file(tmp_path: Path) -> None:
    """Nothing is written, and no temporary file stays."""
    path = write(tmp_path / "settings.json", "old")

    def fail(text: str) -> str:
        raise SettingsError(text)

    with pytest.raises(SettingsError, match="old"):
        rewrite(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_unchanged_text_is_not_written(tmp_path: Path) -> None:
    """The file keeps its time and its inode."""
    path = write(tmp_path / "settings.json", "{}")
    before = path.stat()
    rewrite(path, lambda text: text)
    assert path.stat().st_ino == before.st_ino


def test_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    """The operator's link to another place is kept."""
    target = write(tmp_path / "real.json", "{}")
    link = tmp_path / "settings.json"
    link.symlink_to(target)
    rewrite(link, lambda _: '{"a": 1}')
    assert link.is_symlink()
    assert target.read_text() == '{"a": 1}'


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A clear error."""
    write(tmp_path / "file", "x")
    with pytest.raises(SettingsError, match="cannot be written"):
        rewrite(tmp_path / "file" / "settings.json", lambda _: "{}")


def test_read_helpers_on_nothing(tmp_path: Path) -> None:
    """A missing file is no error; an empty root is none."""
    assert read_text(tmp_path / "none") is None
    assert read_text(write(tmp_path / "f", "x") / "below") is None
    assert read_root(tmp_path / "x", " ") == (None, (f"{tmp_path / 'x'}: is empty",))
