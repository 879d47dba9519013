from __future__ import annotations

import pytest
import yaml

from holokube.kube.yaml_text import YamlError, dump_document, load_documents


def bomb(levels: int) -> bytes:
    """Each level names the one before twice: two to the power of ``levels`` values in a few lines."""
    lines = [b"a0: &a0 [x, x]"]
    lines += [b"a%d: &a%d [*a%d, *a%d]" % (level, level, level - 1, level - 1) for level in range(1, levels)]
    return b"\n".join(lines)


def test_dates_stay_strings_and_documents_stay_apart() -> None:
    assert load_documents(b"a: 2026-01-01\n---\n---\n- 1\n") == [{"a": "2026-01-01"}, None, [1]]


def test_aliases_that_would_fill_the_memory_are_refused() -> None:
    with pytest.raises(YamlError, match="excessive aliasing"):
        load_documents(bomb(40))


def test_an_alias_to_itself_is_refused() -> None:
    with pytest.raises(YamlError):
        load_documents(b"a: &a [*a]")


def test_a_large_text_that_merely_mentions_the_characters_is_read() -> None:
    rows = b"\n".join(b"- [1,1,1,1,1,1,1,1,1,1]" for _ in range(110_000))
    (found,) = load_documents(b"- '& and *'\n" + rows)
    assert len(found) == 110_001


@pytest.mark.parametrize("text", [b"a: .nan", b"a: .INF", b"a: [", b"!!python/object:os.system {}", b"? [1]\n: 2"])
def test_what_json_cannot_hold_is_refused(text: bytes) -> None:
    with pytest.raises(YamlError):
        load_documents(text)


@pytest.mark.parametrize("text", ["1e3", "-2E5", "0o17", "y", "N", "true", "12", "2026-01-05", ""])
def test_strings_that_look_like_something_else_are_quoted(text: str) -> None:
    written = dump_document({"value": text})
    assert written.startswith(("value: '", 'value: "')) and yaml.safe_load(written) == {"value": text}


def test_a_value_that_stands_twice_is_written_twice_and_keys_keep_their_order() -> None:
    shared = {"b": 1, "a": 2}
    assert dump_document({"x": shared, "c": shared}) == "x:\n  b: 1\n  a: 2\nc:\n  b: 1\n  a: 2\n"
