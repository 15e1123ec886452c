"""Run the commands and the Python blocks of pages: run_blocks.py DYAD PAGE...

- A block whose first line begins with `$ ` contains commands, one per line that begins with `$ `, and their output. Each command must succeed. The output is
  not compared, because it contains times. `$ cat FILE` of a file that does not exist writes the shown output to it.
- A `bash` block is a script, which must succeed.
- A `python` block must run. If a `text` block follows, it must be what the block prints.
- A block that would be a command but has no `$ ` must follow a comment `<!-- not run: REASON -->`.

The blocks of a page run in one folder, which contains the generated data of `DATA` and the command `producer`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files that the pages name, and the commands that write them.
DATA = f"""
make_data={ROOT}/scripts/make-data
$make_data houses 20000 >houses.csv
$make_data houses 2000 2 >new-houses.csv
$make_data ratings 60000 >ratings.csv
$make_data ratings 5000 2 >new-ratings.csv
$make_data houses 1500 3 >monday.csv
$make_data houses 1500 4 >tuesday.csv
cp monday.csv rows.csv
cp tuesday.csv today.csv
dyad simulate gfm --dim 5 --rank 2 --rows 5000 -o stream.csv --quiet
dyad train monday.csv --target price --rank 4 --passes 1 -m model.dyad --quiet
dyad train monday.csv --target price -m houses.dyad --quiet
"""
PRELUDE = "set -euo pipefail; producer() { cat stream.csv; };"
COMMAND = re.compile(
    r"([A-Z_]+=\S+ )*(dyad|make|pip|python3?|scripts/\S+|build/\S+|git|cmake|for|producer|export|doxygen|apt-get) "
)
SKIP = re.compile(r"<!-- not run: .+ -->")


class BlockError(Exception):
    """A block of a page does not do what the page states."""


@dataclasses.dataclass
class Block:
    line: int
    language: str  # of a fenced block; "indented"; "" without language
    text: str
    is_skipped: bool

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Return the commands of the block with the output that follows each."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the code blocks of a Markdown page."""
    lines = text.split("\n")
    previous = ""
    i = 0
    while i < len(lines):
        first = i
        if lines[i].startswith("```"):
            language = lines[i][3:].strip()
            i += 1
            while not lines[i].startswith("```"):
                i += 1
            yield Block(first + 1, language, "\n".join(lines[first + 1 : i]) + "\n", bool(SKIP.search(previous)))
            previous = ""
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            while i < len(lines) and (
                lines[i].startswith("    ") or (not lines[i].strip() and lines[i + 1 : i + 2] and lines[i + 1].startswith("    "))
            ):
                i += 1
            content = "\n".join(line[4:] for line in lines[first:i]) + "\n"
            yield Block(first + 1, "indented", content, bool(SKIP.search(previous)))
            previous = ""
            continue
        elif lines[i].strip():
            previous = lines[i]
        i += 1


def run_command(command: str, output: str, folder: pathlib.Path, environment: dict[str, str]) -> None:
    """Run a shell command. A `cat` of a file that does not exist defines the file."""
    if match := re.fullmatch(r"cat (\S+)", command.strip()):
        if not (folder / match[1]).exists():
            (folder / match[1]).write_text(output)
    done = subprocess.run(["bash", "-c", f"{PRELUDE} {command}"], cwd=folder, env=environment, capture_output=True, text=True)
    # A filter such as `head` ends before its input does.
    if done.returncode not in ((0, 141) if "|" in command else (0,)):
        raise BlockError(f"$ {command}\nexit code {done.returncode}\n{done.stderr}")


def run_python(code: str, expected: str | None, name: str, folder: pathlib.Path) -> None:
    printed = io.StringIO()
    before = pathlib.Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), {"__name__": "__main__"})
    finally:
        os.chdir(before)
    if expected is not None and printed.getvalue() != expected:
        raise BlockError(f"expected\n{expected}but the block prints\n{printed.getvalue()}")


def check_page(page: pathlib.Path, folder: pathlib.Path, environment: dict[str, str]) -> int:
    """Run the blocks of a page in a folder. Returns the number of commands and blocks that ran."""
    count = 0
    blocks = list(blocks_of(page.read_text()))
    for block, following in zip(blocks, [*blocks[1:], None]):
        try:
            if block.is_skipped or block.language in ("text", "cpp", "mermaid", "html"):
                continue
            if block.language == "python":
                run_python(block.text, following.text if following and following.language == "text" else None, str(page), folder)
                count += 1
            elif block.language == "bash":
                run_command(block.text, "", folder, environment)
                count += 1
            elif block.text.startswith("$ "):
                for command, output in block.commands:
                    run_command(command, output, folder, environment)
                    count += 1
            elif COMMAND.match(block.text):
                raise BlockError("a command without `$ ` and without a comment `<!-- not run: REASON -->` before it")
        except Exception as error:
            raise BlockError(f"{page}:{block.line}: {error}") from error
    return count


def environment_of(dyad: pathlib.Path, folder: pathlib.Path) -> dict[str, str]:
    """Return an environment in which `dyad` is the given command."""
    (folder / "bin").mkdir()
    (folder / "bin" / "dyad").symlink_to(dyad.resolve())
    own = {name: value for name, value in os.environ.items() if not name.startswith("DYAD_")}
    return {**own, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}


def main() -> int:
    failures = 0
    with tempfile.TemporaryDirectory() as root:
        environment = environment_of(pathlib.Path(sys.argv[1]), pathlib.Path(root))
        for page in map(pathlib.Path, sys.argv[2:]):
            folder = pathlib.Path(root) / page.stem
            folder.mkdir()
            subprocess.run(["bash", "-ec", DATA], cwd=folder, env=environment, check=True)
            try:
                if count := check_page(page, folder, environment):
                    print(f"{page}: {count} commands and blocks ran", flush=True)
            except BlockError as error:
                failures += 1
                print(error, file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
