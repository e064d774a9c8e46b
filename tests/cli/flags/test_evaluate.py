"""Evaluation from a folder and from a server, which say the same."""

from __future__ import annotations

import pytest

from seamark.cli.flags.evaluate import attribute
from seamark.errors import BadInput
from tests.cli.flags.desk import Desk
from tests.cli.flags.test_push import WRONG
from tests.flags.test_evaluate_routes import FILES

JO = ("-e", "staging", "-a", "user.email=jo@example.com", "-a", "user.beta=true")


@pytest.mark.parametrize("here", [True, False])
def test_which_variants_somebody_gets(desk: Desk, here: bool) -> None:
    folder = desk.write(FILES)
    desk.run("push", folder)
    where = ("--dir", folder) if here else ()
    some = desk.run("eval", "checkout", *JO, *where).lines
    assert some == [
        {
            "event": "evaluated",
            "flag": "checkout",
            "variant": "new",
            "value": {"steps": 1, "title": "straight"},
            "rule_matched": "rule:0",
        }
    ]
    everything = {one["flag"]: one["variant"] for one in desk.run("eval", *JO, *where).lines}
    assert everything == {"checkout": "new", "limit": "few"}
    tested = desk.run("eval", "limit", *JO, "--include-testing", *where).lines
    assert (tested[0]["variant"], tested[0]["value"]) == ("many", 9)
    missing = desk.run("eval", "gone", "limit", *JO, *where, status=1)
    assert [one["flag"] for one in missing.lines] == ["limit"]
    assert "there is no flag gone" in missing.err
    assert "nowhere" in desk.run("eval", "limit", "-e", "nowhere", *where, status=2).err
    assert "rule:0" in desk.run("eval", "checkout", *JO, *where, "--text").out


def test_a_manifest_with_errors_is_not_evaluated(desk: Desk) -> None:
    said = desk.run("eval", "a", "-e", "production", "--dir", desk.write(WRONG), status=1)
    assert [one["code"] for one in said.lines] == ["E005"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k=text", "text"),
        ("k=a=b", "a=b"),
        ("k=", ""),
        ("k=true", True),
        ("k=1", 1),
        ("k=-1.5", -1.5),
        ('k="1"', "1"),
        ("k=1.2.3", "1.2.3"),
        ("k=null", "null"),
        ("k=[1]", "[1]"),
    ],
)
def test_attributes(text: str, value: object) -> None:
    key, read = attribute(text)
    assert (key, read, type(read)) == ("k", value, type(value))


@pytest.mark.parametrize("text", ["", "k", "=v", f"k={2**63}"])
def test_what_is_no_attribute(text: str) -> None:
    with pytest.raises(BadInput):
        attribute(text)
