"""The check that keeps wall clocks and global randomness out of everything but holokube.base."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "lint" / "forbidden_calls.py"


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("forbidden_calls", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclass looks its module up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tool = load_tool()


def lines_flagged(source: str) -> list[int]:
    return sorted({finding.line for finding in tool.check_source(source, "m.py")})


@pytest.mark.parametrize("source", [
    "import time\ntime.time()",
    "import time as t\nt.monotonic()",
    "import time\ntime.perf_counter_ns()",
    "import time\ntime.sleep(1)",
    "import time\nnow = time.time",
    "import time\nclass A:\n    at: float = field(default_factory=time.time)",
    "import time\ntime.gmtime()",
    "import time\ntime.strftime('%Y')",
    "import time\ngetattr(time, 'time')()",
    "import datetime\ndatetime.datetime.now(datetime.UTC)",
    "import datetime as d\nd.date.today()",
    "from datetime import datetime\ndatetime.utcnow()",
    "from datetime import datetime as dt, date\ndt.today()",
    "from datetime import date as day\nday.today()",
    "import uuid\nuuid.uuid4()",
    "import uuid\nuuid.uuid1()",
    "import os\nos.urandom(8)",
    "import numpy as np\nnp.random.default_rng(1)",
    "import numpy\nnumpy.random.rand()",
    "import asyncio\nasyncio.get_running_loop().time()",
    "from asyncio import get_event_loop as g\ng().time()",
    "def f(loop):\n    return loop.time()",
    "class A:\n    def f(self): return self._loop.time()",
    "import threading\nthreading.Timer(1, print)",
    "x = 1\n__import__('random').random()",
    "import importlib\nimportlib.import_module('secrets')",
    "def f():\n    import time; time.time()",
    "import time\nasync def f(): time.sleep(1)",
    "import time\nf = lambda: time.time()",
    "import time\nx = [time.time() for _ in y]",
])
def test_a_forbidden_use_is_flagged_where_it_stands(source: str) -> None:
    assert lines_flagged(source) == [len(source.splitlines())]


@pytest.mark.parametrize("source", [
    "from time import time as t",
    "from time import sleep",
    "import random",
    "import random as r",
    "from random import choice",
    "from numpy import random",
    "import numpy.random",
    "from numpy.random import default_rng",
    "import secrets",
    "from secrets import token_hex",
    "from os import urandom",
    "from uuid import uuid4 as new_id",
    "from time import *",
])
def test_importing_a_forbidden_name_is_flagged_already(source: str) -> None:
    assert lines_flagged(source) == [1]


def test_an_alias_is_followed_to_its_uses() -> None:
    assert lines_flagged("from time import time as t\n\ndef f():\n    return t()\n") == [1, 4]


@pytest.mark.parametrize("source", [
    "import time\ntime.gmtime(0)\ntime.strftime('%Y', moment)\ntime.struct_time",
    "from datetime import datetime, timedelta\ndatetime.fromtimestamp(0)\ndatetime(2026, 1, 1)",
    "import uuid\nuuid.UUID(text)\nuuid.uuid5(space, name)",
    "import os\nos.environ",
    "import numpy as np\nnp.zeros(3)",
    "async def f(clock):\n    clock.time()\n    clock.now()\n    await clock.sleep(1)",
    "def f(rng):\n    return rng.random(), rng.choice([1])",
    "import time\ndef f(time):\n    return time.time()",
    "import time\ndef f():\n    time = make()\n    return time.time()",
    "import time\nf = lambda time: time.time()",
    "random = 3\nrandom.random",
    "from .time import time\ntime()",
    "import asyncio\nasyncio.get_running_loop().call_later(1, f)",
])
def test_harmless_code_passes(source: str) -> None:
    assert tool.check_source(source, "m.py") == []


def test_a_variable_hides_an_import_only_in_its_own_function() -> None:
    source = "import time\ndef f():\n    time = 1\ndef g():\n    return time.time()\n"
    assert lines_flagged(source) == [5]


def test_a_message_says_where_what_and_what_to_use_instead() -> None:
    finding, = tool.check_source("import uuid\n\nx = uuid.uuid4()\n", "src/holokube/kube/a.py")
    assert str(finding).startswith("src/holokube/kube/a.py:3:5: uuid.uuid4 is global randomness; use rng.uid")


def test_a_file_that_cannot_be_parsed_is_a_finding() -> None:
    finding, = tool.check_source("def f(:\n", "m.py")
    assert "m.py:1:" in str(finding)
    assert "cannot be parsed" in str(finding)


def test_the_base_layer_is_exempt_and_others_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    package = tmp_path / "holokube"
    for layer in ("base", "kube"):
        (package / layer).mkdir(parents=True)
        (package / layer / "a.py").write_text("import time\ntime.time()\n")
    assert tool.main([str(package)]) == 1
    line, = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{package}/kube/a.py:2:1: time.time reads the wall clock; use clock.now(), ")
    (package / "kube" / "a.py").write_text("x = 1\n")
    assert tool.main([str(package)]) == 0


def test_a_missing_path_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["no/such/folder"]) == 2
    assert "no such file or folder" in capsys.readouterr().err
