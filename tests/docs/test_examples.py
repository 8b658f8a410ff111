"""Every example in the README and in the documentation runs and prints what it says."""

import json
import re
from pathlib import Path

import pytest

from a2a_trio.config import jsonc
from a2a_trio.config.sources import read_object
from tests.docs.conftest import ROOT, Block, Terminal, blocks, pages, pattern_of, steps

LANGUAGES = {"python", "console", "json", "jsonc", "text", "mermaid"}

EXAMPLES = [
    page for page in pages() if any(b.language in ("python", "console") for b in blocks(page))
]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", EXAMPLES, ids=_name)
def test_examples_run(page: Path, terminal: Terminal) -> None:
    """The blocks of a page, one after the other, in one folder, as a reader would do it."""
    printed = ""
    for block in blocks(page):
        where = f"{_name(page)}:{block.line}"
        match block.language:
            case "console":
                _console(block, terminal, where)
            case "python":
                printed = _python(block, terminal, where)
            case "text" if "prints" in block.directives:
                assert pattern_of(block.text).fullmatch(printed), f"{where} prints:\n{printed}"
            case _ if "file" in block.directives:
                terminal.write(block.directives["file"], block.text)


def _console(block: Block, terminal: Terminal, where: str) -> None:
    for step in steps(block.text):
        if "background" in block.directives:
            terminal.start(step)
            continue
        done = terminal.run(step.command)
        output = terminal.shown(done.stdout)
        if not output.endswith("\n"):
            output += "\n"
        assert done.returncode == 0, f"{where} $ {step.command}\n{output}"
        if step.expected:
            assert pattern_of(step.expected).fullmatch(output), (
                f"{where} $ {step.command}\nexpected:\n{step.expected}\ngot:\n{output}"
            )


def _python(block: Block, terminal: Terminal, where: str) -> str:
    name = block.directives.get("file")
    if name:
        terminal.write(name, block.text)
        return ""
    (terminal.folder / "example.py").write_text(terminal.real(block.text), encoding="utf-8")
    done = terminal.run("python example.py")
    assert done.returncode == 0, f"{where}\n{done.stdout}"
    return terminal.shown(done.stdout)


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_every_block_has_a_kind_that_is_checked(page: Path) -> None:
    """A block in an unknown language would be an example that nobody runs."""
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{_name(page)}:{block.line}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_files_of_examples_are_used(page: Path) -> None:
    """A file that no later command or program of its page names is an example that is not run."""
    found = list(blocks(page))
    for index, block in enumerate(found):
        name = block.directives.get("file")
        if name:
            later = "\n".join(b.text for b in found[index + 1 :])
            stem = name.removesuffix(".py")
            assert re.search(rf"\b({re.escape(name)}|{re.escape(stem)}:)", later), (
                f"{_name(page)}:{block.line}: {name}"
            )


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_json_blocks_are_json(page: Path) -> None:
    """Settings and messages in the text can be copied: they parse, and every setting exists."""
    for block in blocks(page):
        if block.language == "json":
            json.loads(block.text)
        if block.language == "jsonc":
            node, _ = jsonc.parse(block.text)
            assert isinstance(node.value, dict)
            layer = read_object(
                node.value["a2a"], label="page", project=False, read_secret=lambda *_: "s" * 20
            )
            assert (layer.problems, layer.warnings) == ((), ())


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links point at files of the repository, anchors at headings of them."""
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{_name(page)}: {target}"
        if anchor:
            assert anchor in _anchors(file), f"{_name(page)}: {target}"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}


def test_every_page_is_reachable_from_the_readme() -> None:
    """A page that nothing links to is lost."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8"))
        waiting += [(page.parent / target).resolve() for target in targets]

    assert set(pages()) <= seen


def test_readme_names_no_other_host() -> None:
    """The README needs no registry, no badge and no other site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    hosts = set(re.findall(r"https?://([^/\s:\"')]+)", text))
    assert hosts <= {"127.0.0.1"}


def test_steps_are_read_as_a_terminal_shows_them() -> None:
    """Commands, their output, and a command over two lines."""
    found = steps("$ one\nout\n$ two \\\n>   three\n$ four\n")

    assert [(s.command, s.expected) for s in found] == [
        ("one", "out\n"),
        ("two \\\n  three", ""),
        ("four", ""),
    ]


def test_three_dots_stand_for_anything() -> None:
    """Ids and times differ from run to run; the rest is exact."""
    assert pattern_of("task ... done.\n").fullmatch("task 1b4f\nx done.\n")
    assert not pattern_of("task ... done.\n").fullmatch("task 1b4f donex\n")
