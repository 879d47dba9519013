"""Refuse wall clocks and global randomness outside holokube.base.

The same scenario with the same seed must give the same bytes, so time comes from a Clock and every draw from
an Rng. This check follows imports and their aliases through each module's syntax tree; it flags references,
not only calls, because ``default_factory=time.time`` reads the wall clock as well.

    python tools/lint/forbidden_calls.py [PATH ...]      default: src/holokube

Prints ``file:line:column: what; what to use instead`` per finding. Exit codes: 0 clean, 1 findings, 2 usage.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PATHS = ("src/holokube",)

_READ = "reads the wall clock; use clock.now(), clock.time() or clock.monotonic() of the Clock you were given"
_SLEEP = "blocks the whole event loop; use `await clock.sleep(seconds)`"
_TIMER = "waits for the wall clock; use a task with `await clock.sleep(seconds)`"
_LOOP = "bypasses the Clock; use clock.monotonic(), which equals the running loop's time"
_DRAW = "is global randomness; draw from the Rng you were given (holokube.base.rng), or rng.fork(name)"
_UID = "is global randomness; use rng.uid() of the Rng you were given"
_ENTROPY = "reads the system's entropy; use Rng(system_seed()) from holokube.base.rng, once, at the top"

_TIME_READERS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "localtime",
    "ctime",
)

# Dotted name -> why it is refused and what to use instead.
FORBIDDEN: dict[str, str] = {
    **{f"time.{name}": _READ for name in _TIME_READERS},
    "time.sleep": _SLEEP,
    "threading.Timer": _TIMER,
    "datetime.datetime.now": _READ,
    "datetime.datetime.utcnow": _READ,
    "datetime.datetime.today": _READ,
    "datetime.date.today": _READ,
    "uuid.uuid1": _UID,
    "uuid.uuid4": _UID,
    "uuid.uuid6": _UID,
    "uuid.uuid7": _UID,
    "os.urandom": _ENTROPY,
    "os.getrandom": _ENTROPY,
    "ssl.RAND_bytes": _ENTROPY,
}
# Modules of which nothing may be used.
FORBIDDEN_MODULES: dict[str, str] = {"random": _DRAW, "numpy.random": _DRAW, "secrets": _ENTROPY}
# Functions that read the wall clock only when called with at most this many arguments.
CLOCK_BY_DEFAULT: dict[str, int] = {"time.gmtime": 0, "time.asctime": 0, "time.strftime": 1}

_LOOP_GETTERS = {"asyncio.get_event_loop", "asyncio.get_running_loop", "asyncio.new_event_loop"}
_LOOP_NAMES = {"loop", "_loop", "event_loop", "_event_loop"}
_IMPORTERS = {"__import__", "importlib.import_module", "importlib.__import__"}


@dataclass(frozen=True, order=True, slots=True)
class Finding:
    """One refused reference."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


def reason(dotted: str) -> str | None:
    """Why a dotted name is refused, or None."""
    if dotted in FORBIDDEN:
        return FORBIDDEN[dotted]
    for module, why in FORBIDDEN_MODULES.items():
        if dotted == module or dotted.startswith(f"{module}."):
            return why
    return None


class _Checker(ast.NodeVisitor):
    """Walks one module with a stack of scopes: name -> dotted origin, or None for an ordinary variable."""

    def __init__(self, file: str) -> None:
        self.findings: set[Finding] = set()
        self._file = file
        self._scopes: list[dict[str, str | None]] = [{}]

    def _add(self, node: ast.expr | ast.stmt, what: str, why: str) -> None:
        self.findings.add(Finding(self._file, node.lineno, node.col_offset + 1, f"{what} {why}"))

    # --- names

    def _origin(self, node: ast.expr) -> str | None:
        """The dotted name an expression stands for, as far as imports tell."""
        if isinstance(node, ast.Name):
            for scope in reversed(self._scopes):
                if node.id in scope:
                    return scope[node.id]
            return "__import__" if node.id == "__import__" else None
        if isinstance(node, ast.Attribute):
            base = self._origin(node.value)
            return None if base is None else f"{base}.{node.attr}"
        if isinstance(node, ast.Call) and self._origin(node.func) in _IMPORTERS:
            return _constant_text(node.args[0]) if node.args else None
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            why = reason(alias.name)
            if why is not None:
                self._add(node, alias.name, why)
            # `import a.b` binds `a`; `import a.b as c` binds the whole path.
            bound = alias.asname or alias.name.split(".")[0]
            self._scopes[-1][bound] = alias.name if alias.asname else bound

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            # A relative import names a module of ours; it hides whatever had the name before.
            self._scopes[-1].update({alias.asname or alias.name: None for alias in node.names})
            return
        for alias in node.names:
            if alias.name == "*":
                if any(name.startswith(f"{node.module}.") for name in (*FORBIDDEN, *FORBIDDEN_MODULES)):
                    self._add(node, f"from {node.module} import *",
                              "hides forbidden names; import what you need by name")
                continue
            dotted = f"{node.module}.{alias.name}"
            why = reason(dotted)
            if why is not None:
                self._add(node, dotted, why)
            self._scopes[-1][alias.asname or alias.name] = dotted

    # --- uses

    def visit_Name(self, node: ast.Name) -> None:
        self._check_reference(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._check_reference(node):
            return
        if node.attr == "time" and self._is_loop(node.value):
            self._add(node, f"{ast.unparse(node)}", _LOOP)
        self.visit(node.value)

    def _check_reference(self, node: ast.Name | ast.Attribute) -> bool:
        origin = self._origin(node)
        why = None if origin is None else reason(origin)
        if origin is None or why is None:
            return False
        self._add(node, origin, why)
        return True

    def _is_loop(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return self._origin(node.func) in _LOOP_GETTERS
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        return name in _LOOP_NAMES

    def visit_Call(self, node: ast.Call) -> None:
        origin = self._origin(node.func)
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if origin in CLOCK_BY_DEFAULT and not starred and len(node.args) <= CLOCK_BY_DEFAULT[origin]:
            self._add(node, f"{origin} without a time", _READ)
        if origin in _IMPORTERS:
            imported = self._origin(node)
            why = None if imported is None else reason(imported)
            if imported is not None and why is not None:
                self._add(node, imported, why)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) >= 2:
            self._check_getattr(node)
        self.generic_visit(node)

    def _check_getattr(self, node: ast.Call) -> None:
        base, attribute = self._origin(node.args[0]), _constant_text(node.args[1])
        if base is None or attribute is None:
            return
        why = reason(f"{base}.{attribute}")
        if why is not None:
            self._add(node, f"{base}.{attribute}", why)

    # --- scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        # Decorators, defaults and annotations are evaluated outside the function's own scope.
        outside: list[ast.AST] = [*node.decorator_list, node.args]
        if node.returns is not None:
            outside.append(node.returns)
        for part in outside:
            self.visit(part)
        self._scopes.append(dict.fromkeys(_local_names(node)))
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._scopes.append(dict.fromkeys(_argument_names(node.args)))
        self.visit(node.body)
        self._scopes.pop()


def _constant_text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _argument_names(arguments: ast.arguments) -> Iterator[str]:
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield argument.arg
    for variadic in (arguments.vararg, arguments.kwarg):
        if variadic is not None:
            yield variadic.arg


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Arguments and assigned variables, which hide imports of the same name inside the function."""
    names = set(_argument_names(function.args))
    outer: set[str] = set()
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer.update(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif not isinstance(node, ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))
    return names - outer


def check_source(source: str, file: str) -> list[Finding]:
    """The findings in one module's text, in order."""
    try:
        tree = ast.parse(source, filename=file)
    except SyntaxError as error:
        return [Finding(file, error.lineno or 1, error.offset or 1, f"cannot be parsed: {error.msg}")]
    checker = _Checker(file)
    checker.visit(tree)
    return sorted(checker.findings)


def python_files(root: Path) -> Iterator[Path]:
    """The modules to check: all but those of holokube/base, which own the clock and the randomness."""
    candidates = [root] if root.is_file() else sorted(root.rglob("*.py"))
    for path in candidates:
        parts = path.resolve().parts
        if not any(parts[i : i + 2] == ("holokube", "base") for i in range(len(parts) - 1)):
            yield path


def main(arguments: Sequence[str]) -> int:
    roots = [Path(argument) for argument in (arguments or DEFAULT_PATHS)]
    for root in roots:
        if not root.exists():
            print(f"{root}: no such file or folder; run this from the top of the repository, or name the "
                  "paths", file=sys.stderr)
            return 2
    findings = [
        finding for root in roots for path in python_files(root)
        for finding in check_source(path.read_text(encoding="utf-8"), str(path))
    ]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
