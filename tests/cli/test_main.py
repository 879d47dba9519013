"""The program as a whole: versions, completion, exit codes, and how errors look."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from holokube import __version__
from holokube.base.errors import ConfigError, UsageError
from holokube.base.log import JsonFormatter
from holokube.cli import main as cli
from holokube.cli.settings import Settings, common_options
from tests.cli.program import Inside, assert_two_lines, environment, run


def test_version_comes_as_text_json_and_yaml(tmp_path: Path) -> None:
    assert f"holokube    {__version__}" in run(tmp_path, "version").stdout
    as_json = json.loads(run(tmp_path, "version", "-o", "json").stdout)
    as_yaml = yaml.safe_load(run(tmp_path, "version", "--output=yaml").stdout)
    assert as_json == as_yaml
    assert as_json["holokube"] == __version__
    assert as_json["kubernetes"].startswith("v1.")
    assert run(tmp_path, "--version").stdout == f"holokube {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed_and_answer(tmp_path: Path, shell: str) -> None:
    script = run(tmp_path, "completion", shell)
    assert script.returncode == 0
    assert "_HOLOKUBE_COMPLETE" in script.stdout
    words = {"COMP_WORDS": "holokube sn", "COMP_CWORD": "sn" if shell == "fish" else "1"}
    answer = run(tmp_path, _HOLOKUBE_COMPLETE=f"{shell}_complete", **words)
    assert "snapshot" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["nonsense"], "No such command 'nonsense'.", "See `holokube --help`."),
        (["snapshto"], "No such command 'snapshto'. Did you mean 'snapshot'?", "See `holokube --help`."),
        (["up", "--nonsense"], "No such option", "See `holokube up --help`."),
        (["up", "--port", "99999"], "Invalid value for '--port'", "See `holokube up --help`."),
        (["version", "-o", "xml"], "Invalid value for '-o'", "See `holokube version --help`."),
        (["completion"], "Missing argument", "See `holokube completion --help`."),
        (["--nonsense"], "No such option", "See `holokube --help`."),
    ],
)
def test_wrong_usage_ends_with_2_and_two_lines(
    capsys: pytest.CaptureFixture[str], arguments: list[str], what: str, hint: str
) -> None:
    assert cli.run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    said, advised = assert_two_lines(captured.err)
    assert said.startswith(what)
    assert advised == hint


@pytest.mark.parametrize(
    ("error", "code", "what"),
    [
        (ConfigError("it is\nbroken", hint="Mend it."), 1, "it is broken"),
        (UsageError("a bad file"), 2, "a bad file"),
        (PermissionError(13, "Permission denied", "/x"), 1, "/x: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (RuntimeError("oops"), 1, "unexpected RuntimeError: oops"),
    ],
)
def test_every_error_ends_with_its_code_and_two_lines(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    what: str,
) -> None:
    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(cli.Program, "get_command", lambda *_: failing)
    assert cli.run(["up"]) == code
    # An interrupted command starts a new line after the ^C that the terminal shows.
    said, _ = assert_two_lines(capsys.readouterr().err.removeprefix("\n"))
    assert said == what


def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def failing() -> None:
        raise ConfigError("broken")

    monkeypatch.setattr(cli.Program, "get_command", lambda *_: failing)
    assert cli.run(["--debug", "up"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_help_is_for_stdout_and_names_every_command(tmp_path: Path) -> None:
    for arguments in ((), ("--help",), ("-h",)):
        done = run(tmp_path, *arguments)
        assert done.returncode == 0
        assert all(name in done.stdout for name in cli.COMMANDS)
        assert done.stderr == ""


def test_the_summary_of_each_command_is_its_first_sentence() -> None:
    context = click.Context(cli.program)
    for name, (_, summary) in cli.COMMANDS.items():
        command = cli.program.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert (command.help or "").startswith(summary.rstrip("."))


def test_help_and_version_import_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom holokube.cli.main import run\n"
        "run(['--help']); run(['up', '--help']); run(['snapshot', '--help'])\n"
        "heavy = {'aiohttp', 'numpy', 'cryptography', 'rich', 'kubernetes', 'yaml'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment(tmp_path)
    )
    assert done.returncode == 0, done.stderr


def test_the_server_imports_nothing_it_does_not_need(tmp_path: Path) -> None:
    code = (
        "import sys\nimport holokube.cli.foreground\n"
        "heavy = {'numpy', 'rich', 'kubernetes', 'kr8s', 'pytest'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment(tmp_path)
    )
    assert done.returncode == 0, done.stderr


def test_a_run_of_a_scenario_imports_no_server(tmp_path: Path) -> None:
    code = (
        "import sys\nimport holokube.cli.run_many\n"
        "heavy = {'aiohttp', 'rich', 'holokube.karpenter.app'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment(tmp_path)
    )
    assert done.returncode == 0, done.stderr


def test_how_seldom_a_command_collects_is_over_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def rarely() -> None:
        gc.set_threshold(1_000_000, 3, 4)

    monkeypatch.setattr(cli.Program, "get_command", lambda *_: rarely)
    before = gc.get_threshold()
    assert cli.run(["run"]) == 0
    assert gc.get_threshold() == before


def test_common_options_count_before_and_after_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []

    @click.command()
    @common_options
    @click.pass_obj
    def looking(settings: Settings) -> None:
        seen.append(settings)

    monkeypatch.setattr(cli.Program, "get_command", lambda *_: looking)
    assert cli.run(["-v", "--log-format", "json", "up", "-v", "--debug", "--no-color"]) == 0
    assert seen == [Settings(verbosity=2, log_format="json", debug=True, no_color=True)]


def test_logs_follow_the_options(inside: Inside, tmp_path: Path) -> None:
    file = tmp_path / "nothing.yaml"
    file.write_text("")
    inside("up", "--log-format", "json", "-vv", "--from", str(file))
    logger = logging.getLogger()
    assert logger.level == logging.DEBUG
    assert any(isinstance(handler.formatter, JsonFormatter) for handler in logger.handlers)
