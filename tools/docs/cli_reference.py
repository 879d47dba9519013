"""Writes docs/cli.md, the reference of all commands, from the commands themselves.

python tools/docs/cli_reference.py            writes the file
python tools/docs/cli_reference.py --check    ends with 1 if the file is not what would be written
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from holokube.cli.main import COMMANDS, program

TARGET = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
HEAD = """\
# Command line

<!-- Written by `python tools/docs/cli_reference.py`; change the commands, not this file. -->

Data goes to stdout, logs and progress to stderr; colours are used only on a terminal. The
[common options](#common-options) may stand before or after the command.

| exit code | meaning |
|---:|---|
| 0 | done; for commands that run until they are stopped, such as `holokube up`: stopped by Ctrl-C or SIGTERM |
| 1 | failed |
| 2 | wrong usage: an unknown command or option, or a file that cannot be used |
| 3 | `holokube run` and `holokube sweep`: an assertion of the scenario does not hold |
| 130 | interrupted by Ctrl-C |

An error is reported in two lines: what is wrong, and what to do about it. `--debug` adds the traceback.
"""


def reference() -> str:
    """The whole page."""
    context = click.Context(program, info_name="holokube")
    common = {option for parameter in program.params for option in parameter.opts}
    parts = [HEAD]
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None
        parts.append(
            "\n".join(_section(command, click.Context(command, info_name=name, parent=context), common))
        )
    options = [parameter for parameter in program.params if isinstance(parameter, click.Option)]
    parts.append("\n".join(["## Common options", "", *_table(options, context)]))
    return "\n".join(parts)


def _section(command: click.Command, context: click.Context, common: set[str]) -> Iterator[str]:
    yield f"## holokube {command.name}"
    yield ""
    yield f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    yield ""
    yield _prose(command.help or "")
    yield ""
    own = [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and not common.intersection(parameter.opts)
    ]
    if own:
        yield from _table(own, context)


def _prose(text: str) -> str:
    """Help text as Markdown: click marks what must not be wrapped, which is code here."""
    paragraphs = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.lstrip().startswith("\b"):
            lines = paragraph.replace("\b", "").strip("\n").splitlines()
            paragraphs.append("\n".join(f"    {line}" for line in lines))
        else:
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def _table(options: list[click.Option], context: click.Context) -> Iterator[str]:
    yield "| option | meaning |"
    yield "|---|---|"
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            names, text = (part.replace("|", "\\|") for part in record)
            yield f"| `{names}` | {text} |"
    yield ""


def main(arguments: list[str]) -> int:
    page = reference()
    if arguments == ["--check"]:
        if TARGET.read_text() == page:
            return 0
        print(f"{TARGET.name} is out of date: run `python tools/docs/cli_reference.py`", file=sys.stderr)
        return 1
    TARGET.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
