from __future__ import annotations

import pytest

from holokube.apiserver.crds.patterns import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"^a$", ["a"], ["a\n", "b"]),
        (r"^[[:alpha:]]+$", ["abC"], ["a1", ""]),
        (r"^[^[:space:]]$", ["x"], [" ", "\t"]),
        (r"^\d\w$", ["1a"], ["\u0661a", "1é"]),
        (r"^\p{L}+$", ["aé", "Ω"], ["1"]),
        (r"^\PL$", ["1"], ["a"]),
        (r"^\p{Greek}$", ["Ω"], ["a"]),
        (r"(?i)^abc\z", ["ABC"], ["abcd"]),
        (r"^a(?i)b$", ["aB"], ["AB"]),
        (r"^\Qa.b\E$", ["a.b"], ["axb"]),
        (r"^\x{41}\x42\103$", ["ABC"], ["abc"]),
        (r"^(?P<n>a)(?:b)$", ["ab"], ["a"]),
        (r"^a{2}$", ["aa"], ["a"]),
        (r"^a{x}$", ["a{x}"], ["aa"]),
        (r"^[a&&b]$", ["&"], ["c"]),
        (r"^[]a]$", ["]"], ["b"]),
        (r"^a+?$", ["aa"], ["b"]),
        (r"^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$", ["10.0.0.1"], ["10.0.0"]),
    ],
)
def test_re2_patterns_match_the_same_texts(pattern: str, matching: list[str], others: list[str]) -> None:
    matches = compile_pattern(pattern)
    assert [text for text in matching if not matches(text)] == []
    assert [text for text in others if matches(text)] == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", "invalid escape sequence: `\\1`"),
        (r"a**", "invalid nested repetition operator: `*`"),
        (r"*a", "missing argument to repetition operator: `*`"),
        (r"a(", "missing closing ): `a(`"),
        (r"a)", "unexpected ): `a)`"),
        (r"[a", "missing closing ]: `[a`"),
        (r"a\y", "invalid escape sequence: `\\y`"),
        (r"a{1001}", "invalid repeat count: `{1001}`"),
        ("a\\", "trailing backslash"),
    ],
)
def test_what_re2_does_not_take_is_refused_with_its_words(pattern: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert message in str(caught.value)
