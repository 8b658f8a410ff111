"""Check what is in the wheel: the package, typed, and nothing else."""
# ruff: noqa: INP001 - a script, run by its path

import sys
import zipfile


def main(path: str) -> int:
    """Print what is wrong with the wheel at ``path``; 0 if nothing is."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    problems = [f"not ours: {n}" for n in names if not n.startswith(("a2a_trio/", "a2a_trio-"))]
    problems += [f"a test: {n}" for n in names if "/tests/" in n or "/test_" in n]
    problems += [f"missing: {n}" for n in ("a2a_trio/py.typed",) if n not in names]
    if not any(n.endswith("/licenses/LICENSE") for n in names):
        problems.append("missing: LICENSE")
    for problem in problems:
        sys.stderr.write(problem + "\n")
    sys.stdout.write(f"{len(names)} files in the wheel\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
