"""Links in the docs lead somewhere, and every page can be reached from the README."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.markdown import ROOT, page_paths, without_code

LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = ("http://", "https://", "mailto:")


def links(path: Path) -> list[str]:
    return [link for link in LINK.findall(without_code(path)) if not link.startswith(ELSEWHERE)]


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    text = re.sub(r"^(`{3,}).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_resolve() -> None:
    broken = []
    for path in page_paths():
        for link in links(path):
            target, _, anchor = link.partition("#")
            file = (path.parent / target).resolve() if target else path
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{path.relative_to(ROOT)}: {link}")
    assert not broken, "\n".join(broken)


def test_every_page_is_reached_from_the_readme() -> None:
    start = ROOT / "README.md"
    reached, ahead = {start}, [start]
    while ahead:
        path = ahead.pop()
        for link in links(path):
            file = (path.parent / link.partition("#")[0]).resolve()
            if file.suffix == ".md" and file.exists() and file not in reached:
                reached.add(file)
                ahead.append(file)
    lost = {path.relative_to(ROOT).as_posix() for path in page_paths()} - {
        path.relative_to(ROOT).as_posix() for path in reached
    }
    assert not lost


def test_nothing_but_known_sites_is_linked() -> None:
    """Docs stand on their own: outside links are few, and none of them is needed to run anything."""
    allowed = {"keepachangelog.com", "semver.org"}
    for path in page_paths():
        for host in re.findall(r"\]\(https?://([^/)\s]+)", without_code(path)):
            assert host in allowed, f"{path.relative_to(ROOT)} links to {host}"
