"""Go templates, as far as Stages use them; the expected texts are what Go's text/template writes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow.stages.errors import TemplateError
from holokube.hollow.stages.template import Template

DATA: dict[str, Any] = {
    "name": "n",
    "zero": 0,
    "three": 3,
    "list": ["a", "b"],
    "map": {"y": "2", "x": "1"},
    "items": [{"k": "v", "on": True}, {"k": "w"}],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{ .name }}", "n"),
        ("{{.name}}-{{ $.name }}", "n-n"),
        ("{{ .missing }}", "<no value>"),
        ("{{ .missing.deeper.still }}", "<no value>"),
        ("{{ .list }} {{ .map }}", "[a b] map[x:1 y:2]"),
        ("{{ if .zero }}yes{{ else }}no{{ end }}", "no"),
        ("{{ if .missing }}a{{ else if .three }}b{{ else }}c{{ end }}", "b"),
        ("{{ with .name }}<{{ . }}>{{ end }}{{ with .missing }}x{{ else }}none{{ end }}", "<n>none"),
        ("{{ with .missing }}a{{ else with .name }}{{ . }}{{ end }}", "n"),
        ("{{ range .list }}[{{ . }}]{{ end }}", "[a][b]"),
        ("{{ range $i, $v := .list }}{{ $i }}={{ $v }};{{ end }}", "0=a;1=b;"),
        ("{{ range $v := .list }}{{ $v }}{{ end }}", "ab"),
        ("{{ range $k, $v := .map }}{{ $k }}{{ $v }}{{ end }}", "x1y2"),
        ("{{ range .missing }}x{{ else }}empty{{ end }}", "empty"),
        ("{{ range .list }}{{ if eq . \"b\" }}{{ break }}{{ end }}{{ . }}{{ end }}", "a"),
        ("{{ range .list }}{{ if eq . \"a\" }}{{ continue }}{{ end }}{{ . }}{{ end }}", "b"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ $x := false }}{{ range .items }}{{ if .on }}{{ $x = true }}{{ end }}{{ end }}{{ $x }}", "true"),
        ("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}", "1"),
        ("{{ $x := .items }}{{ (index $x 1).k }}", "w"),
        ("{{ or .missing \"d\" }}{{ and .name .zero }}{{ not .name }}", "d0false"),
        ("{{ or .name (index nil 1) }}", "n"),
        ("{{ eq .missing \"x\" }} {{ eq .name \"a\" \"n\" }} {{ ne .three 3 }} {{ lt 1 2 }} {{ ge 2 2 }}",
         "false true false true true"),
        ("{{ .name | printf \"%s-%s-%s\" \"a\" }}", "a-n-%!s(MISSING)"),
        ("{{ print 1 2 \"a\" 3 }}", "1 2a3"),
        ("{{ printf \"%s-%05d-%q\" .name .three .name }}", "n-00003-\"n\""),
        ("{{ .name | Quote }} {{ .three | Quote }} {{ .missing | Quote }}", '"n" "3" "null"'),
        ("{{ index .map \"x\" }}{{ index .list 1 }}{{ len .list }}", "1b2"),
        ("a  {{- 1 -}}  b", "a1b"),
        ("{{/* a comment */}}x", "x"),
        ("{{ `raw \"text\"` }}", 'raw "text"'),
        ("{{ default \"d\" .missing }}{{ .missing | default \"e\" }}", "de"),
        ("{{ list .name \"b\" | join \"-\" }}", "n-b"),
        ("{{ (dict \"a\" 1).a }} {{ upper .name }} {{ add 1 2 3 }} {{ ternary 1 2 true }}", "1 N 6 1"),
        ("{{ \"}}\" }}", "}}"),
    ],
)  # fmt: skip
def test_templates_render_as_in_go(text: str, expected: str) -> None:
    assert Template(text).render(DATA) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ .a", "not closed"),
        ("{{ if .a }}x", "not closed"),
        ("{{ end }}", "without"),
        ("{{ else }}", "without"),
        ("{{ Frobnicate .a }}", "function 'Frobnicate' is not supported"),
        ("{{ $x }}", "undefined variable"),
        ("{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}", "undefined variable"),
        ("{{ $x = 1 }}", "undefined variable"),
        ("{{ break }}", "outside a range"),
        ("{{ define \"x\" }}{{ end }}", "not supported"),
        ("{{ .a ! }}", "cannot read"),
        ("{{ }}", "empty"),
        ("{{ range .a }}{{ else range .b }}{{ end }}", "does not belong"),
        ("{{ .a | .b }}", "only functions"),
    ],
)
def test_what_cannot_be_parsed_says_why_and_where(text: str, why: str) -> None:
    with pytest.raises(TemplateError, match="line 1") as caught:
        Template(text)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ index .list 7 }}", "out of range"),
        ("{{ index .missing 0 }}", "nil"),
        ("{{ .name.deeper }}", "no field 'deeper'"),
        ("{{ eq .name 1 }}", "different types"),
        ("{{ range .name }}{{ end }}", "range cannot go over"),
        ("{{ upper }}", "arguments"),
        ("{{ div 1 0 }}", "division by zero"),
        ("{{ range 100000000 }}x{{ end }}", "too long"),
    ],
)
def test_what_cannot_be_rendered_says_why(text: str, why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        Template(text).render(DATA)


def test_an_unknown_function_names_those_there_are() -> None:
    with pytest.raises(TemplateError) as caught:
        Template("{{ Frobnicate }}", functions=("NodeIP",))
    assert "NodeIP" in caught.value.supported and "printf" in caught.value.supported


def test_functions_of_the_caller_are_called() -> None:
    template = Template("{{ with NodeIP }}ip: {{ . | Quote }}{{ end }}", functions=("NodeIP",))
    assert template.render_yaml({}, {"NodeIP": lambda: "192.0.2.1"}) == {"ip": "192.0.2.1"}
    assert template.render_yaml({}, {"NodeIP": lambda: ""}) is None


def test_yaml_is_indented_under_its_key() -> None:
    text = "capacity:\n{{ with .c }}\n{{ YAML . 1 }}\n{{ else }}\n  cpu: 1k\n{{ end }}\nphase: Running"
    assert Template(text).render_yaml({"c": {"cpu": "4", "pods": "1e3"}}) == {
        "capacity": {"cpu": "4", "pods": "1e3"}, "phase": "Running"}  # fmt: skip
    assert Template(text).render_yaml({}) == {"capacity": {"cpu": "1k"}, "phase": "Running"}


def test_text_that_is_not_yaml_is_an_error() -> None:
    with pytest.raises(TemplateError, match="not YAML"):
        Template("a: {{ .x }}").render_yaml({"x": "b: c"})


def test_a_template_cannot_write_without_end() -> None:
    with pytest.raises(TemplateError, match="longer than"):
        Template("{{ range 1000000 }}{{ $.x }}{{ end }}").render({"x": "y" * 1000})


@given(st.text(alphabet='{}-$.|:=()" `abif end range with0123,\n/*', max_size=60))
def test_any_text_is_a_template_or_a_template_error(text: str) -> None:
    try:
        template = Template(text)
    except TemplateError:
        return
    with suppress(TemplateError):
        assert isinstance(template.render({"a": {"b": [1, "x"]}}), str)


@given(st.text(alphabet="abc :{}\n-", max_size=40).filter(lambda text: "{{" not in text))
def test_text_without_actions_stays_as_it_is(text: str) -> None:
    assert Template(text).render({}) == text.strip()
