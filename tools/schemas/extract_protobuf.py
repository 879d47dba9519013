"""Read the protobuf field numbers of upstream's types into the package's data files.

    python tools/schemas/extract_protobuf.py --modules "$(go env GOMODCACHE)/k8s.io" --version v0.36.3

Two upstream files tell one half each: ``generated.proto`` has the wire types, the Go structs have the JSON names and
say which fields are pointers. What is kept are facts: numbers, names, types. One file per API package, each message a
list of ``[number, JSON name, type, left out when zero]``; a name that is empty means that the fields of the part
stand in the whole (Go's ``json:",inline"``).
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

SCHEMAS = Path(__file__).resolve().parents[2] / "src" / "holokube" / "apiserver" / "schemas"
TARGET = SCHEMAS.parents[1] / "kube" / "protobuf" / "messages"
MODULES = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")

MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s+(optional|repeated|map<\w+, ([.\w]+)>)\s+(?:([.\w]+)\s+)?(\w+) = (\d+);", re.MULTILINE)
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.MULTILINE | re.DOTALL)
GO_FIELD = re.compile(r"^\s+(?:\w+\s+)?(\S[^`/]*?)\s+`([^`]*protobuf:\"\w+,(\d+),[^`]*)`", re.MULTILINE)


def openapi_name(message: str, package: str) -> str:
    """``.k8s.io.api.core.v1.Pod`` as OpenAPI spells it."""
    full = message[1:] if message.startswith(".") else f"{package}.{message}"
    reversed_host = full.removeprefix("k8s.io.")
    return "io.k8s." + reversed_host.replace("_", "-")


def go_fields(folder: Path) -> dict[str, dict[int, tuple[str, bool]]]:
    """By struct and number: the JSON name (empty if inline), and whether a zero is left out."""
    found: dict[str, dict[int, tuple[str, bool]]] = {}
    for file in folder.glob("*.go"):
        if file.name.endswith("_test.go") or file.name.startswith("generated."):
            continue
        for struct in STRUCT.finditer(file.read_text()):
            for go_type, tags, number in GO_FIELD.findall(struct[2]):
                json_tag = re.search(r'json:"([^"]*)"', tags)
                if json_tag is None:
                    # Quantities, times and the like write their JSON themselves; the server knows them by name.
                    continue
                name, _, options = json_tag[1].partition(",")
                omits = "omitempty" in options and not go_type.startswith("*")
                found.setdefault(struct[1], {})[int(number)] = ("" if "inline" in options else name, omits)
    return found


def messages_of(proto: Path) -> tuple[str, dict[str, list[list[object]]]]:
    text = proto.read_text()
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)[1]  # type: ignore[index]  # the grammar wants one
    go = go_fields(proto.parent)
    messages: dict[str, list[list[object]]] = {}
    for message in MESSAGE.finditer(text):
        rows: list[list[object]] = []
        for label, map_value, plain, name, number in FIELD.findall(message[2]):
            wire = map_value or plain
            if wire[0] == "." or wire[0].isupper():
                wire = openapi_name(wire, package)
            prefix = {"optional": "", "repeated": "[]"}.get(label, "{}")
            json_name, omits = go.get(message[1], {}).get(int(number), (name, False))
            rows.append([int(number), json_name, prefix + wire, omits])
        messages[message[1]] = rows
    return openapi_name("", package).rstrip("."), messages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=Path, required=True)
    parser.add_argument("--version", required=True)
    args = parser.parse_args()
    TARGET.mkdir(parents=True, exist_ok=True)
    for module in MODULES:
        for proto in sorted((args.modules / f"{module}@{args.version}").rglob("generated.proto")):
            package, messages = messages_of(proto)
            if not (SCHEMAS / f"{package}.json").exists():
                continue
            lines = ",\n".join(
                f"{json.dumps(name)}: {json.dumps(rows, separators=(',', ':'))}" for name, rows in messages.items()
            )
            (TARGET / f"{package}.json").write_text("{\n" + lines + "\n}\n")
            print(f"{package}: {len(messages)} messages")


if __name__ == "__main__":
    main()
