"""Read the types and resources of a running kube-apiserver into the package's data files.

    python tools/schemas/extract.py --kubectl KUBECTL --kubeconfig KUBECONFIG

What is kept are facts: names, types, required fields, defaults, merge keys, list types, verbs, short names.
Descriptions are dropped; holokube has its own short ones (``apiserver/descriptions``).
One file per API package, so that a server only loads the packages it is asked for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[2] / "src" / "holokube" / "apiserver" / "schemas"
KEPT = (
    "$ref", "type", "format", "default", "enum", "required", "nullable",
    "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-unions",
    "x-kubernetes-group-version-kind",
)  # fmt: skip


def strip(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without prose; ``allOf: [one ref]`` becomes a plain ref beside its siblings."""
    out: dict[str, Any] = {}
    for part in schema.get("allOf", []):
        out.update(strip(part))
    for key in KEPT:
        if key in schema:
            out[key] = schema[key]
    if "oneOf" in schema:
        out["oneOf"] = [strip(part) for part in schema["oneOf"]]
    if "items" in schema:
        out["items"] = strip(schema["items"])
    if "properties" in schema:
        out["properties"] = {name: strip(part) for name, part in sorted(schema["properties"].items())}
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        out["additionalProperties"] = strip(extra)
    elif extra is not None:
        out["additionalProperties"] = extra
    return out


def resource_rows(group: str, version: str, listing: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for resource in listing["resources"]:
        row = dict(resource)
        row.pop("storageVersionHash", None)
        # A subresource may answer with a kind of another group: pods/eviction is policy/v1 Eviction.
        if "group" in row:
            row["kindGroup"] = row["group"]
        if "version" in row:
            row["kindVersion"] = row["version"]
        row.update(group=group, version=version)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("--kubeconfig", required=True)
    args = parser.parse_args()

    def raw(path: str) -> Any:
        command = [args.kubectl, "--kubeconfig", args.kubeconfig, "get", "--raw", path]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    packages: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    groups = raw("/apis")["groups"]
    served = [("", "v1", "api/v1", "/api/v1")] + [
        (group["name"], version["version"], f"apis/{version['groupVersion']}", f"/apis/{version['groupVersion']}")
        for group in groups
        for version in group["versions"]
    ]
    for group, version, document, path in served:
        rows.extend(resource_rows(group, version, raw(path)))
        for name, schema in raw(f"/openapi/v3/{document}")["components"]["schemas"].items():
            package, _, kind = name.rpartition(".")
            packages.setdefault(package, {})[kind] = strip(schema)
    TARGET.mkdir(parents=True, exist_ok=True)
    for package, kinds in packages.items():
        for kind, schema in kinds.items():
            gvks = schema.get("x-kubernetes-group-version-kind")
            if gvks and len(gvks) > 4:
                # DeleteOptions and WatchEvent belong to every group; the server fills that in itself.
                del kinds[kind]["x-kubernetes-group-version-kind"]
        body = json.dumps(dict(sorted(kinds.items())), indent=None, separators=(",", ":"), sort_keys=True)
        (TARGET / f"{package}.json").write_text(body + "\n")
    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows)
    (TARGET / "resources.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(packages)} packages, {len(rows)} resources")


if __name__ == "__main__":
    main()
