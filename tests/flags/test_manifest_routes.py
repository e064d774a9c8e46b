"""Manifests over HTTP: pushed, fetched, listed, checked, put back; and who may, and over which version."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from seamark.errors import WriteFailed
from seamark.flags import audit
from seamark.log.protocol import Append, Receipt
from seamark.manifest.archive import pack, unpack
from seamark.testing.server import ServerProcess
from tests.flags.house import ACME, BASE, FlagsHouse
from tests.flags.manifests import flag, manifest, segment

MANIFEST = f"{BASE}/manifest"
ONE = manifest({"a": flag()})
TWO = manifest({"a": flag(segment="s"), "b": flag()}, {"s": segment()})
WRONG = manifest({"a": flag(segment="nowhere")})


def form(files: dict[str, bytes]) -> dict[str, Any]:
    return {"files": {"archive": ("m.tar.gz", pack(files), "application/gzip")}}


async def push(house: FlagsHouse, files: dict[str, bytes], status: int = 200, **more: Any) -> Any:
    answer = await house.ask("PUT", MANIFEST, **form(files), **more)
    assert answer.status_code == status, answer.text
    return answer.json()


def over(version: object) -> dict[str, Any]:
    return {"headers": {"If-Version": str(version)}}


async def test_a_push_becomes_a_version(house: FlagsHouse) -> None:
    made = await push(house, ONE)
    assert list(made) == ["version", "uploaded_at", "flag_count", "segment_count", "lint", "request_id"]
    assert made["uploaded_at"] == "2023-11-14T22:13:20.000Z"
    assert (made["version"], made["flag_count"], made["segment_count"]) == (1, 1, 0)
    assert made["lint"]["errors"] == []
    assert [found["code"] for found in made["lint"]["warnings"]] == ["W003"]
    again = await push(house, TWO)
    assert (again["version"], again["flag_count"], again["segment_count"]) == (2, 2, 1)
    assert (await house.call("GET", BASE))["namespace"]["current_version"] == 2


async def test_what_is_fetched_is_what_was_pushed(house: FlagsHouse) -> None:
    await push(house, ONE)
    await push(house, TWO)
    answer = await house.ask("GET", MANIFEST)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["etag"] == '"v2"'
    assert answer.headers["exd-manifest-version"] == "2"
    assert answer.headers["content-disposition"] == 'attachment; filename="billing-v2.tar.gz"'
    assert unpack(answer.content).files == TWO
    assert answer.content == pack(TWO)
    made = await house.ask("PUT", MANIFEST, files={"archive": answer.content})  # pull, then push
    assert made.json()["version"] == 3
    assert (await house.ask("GET", MANIFEST)).content == answer.content


async def test_who_has_it_already_is_told_so(house: FlagsHouse) -> None:
    await push(house, ONE)
    for tag in ('"v1"', 'W/"v1"', '"x", "v1"', "*"):
        answer = await house.ask("GET", MANIFEST, headers={"If-None-Match": tag})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", '"v1"')
    await push(house, ONE)
    assert (await house.ask("GET", MANIFEST, headers={"If-None-Match": '"v1"'})).status_code == 200


async def test_without_a_manifest_there_is_none(house: FlagsHouse) -> None:
    await house.refused(404, "manifest_not_found", "GET", MANIFEST)
    assert (await house.call("GET", f"{MANIFEST}/versions"))["versions"] == []
    await house.refused(404, "version_not_found", "GET", f"{MANIFEST}/versions/1")


async def test_an_empty_manifest_is_one(house: FlagsHouse) -> None:
    made = await push(house, {})
    assert (made["version"], made["flag_count"]) == (1, 0)
    assert [found["code"] for found in made["lint"]["warnings"]] == ["W011"]
    assert unpack((await house.ask("GET", MANIFEST)).content).files == {}


async def test_errors_keep_a_manifest_out(house: FlagsHouse) -> None:
    await push(house, ONE)
    error = (await push(house, WRONG, status=422))["error"]
    assert error["code"] == "manifest_lint_failed"
    assert "1 error;" in error["message"]
    found = error["details"]["lint"]["errors"]
    assert [(one["code"], one["severity"], one["path"]) for one in found] == [("E005", "error", "flags/a.toml")]
    assert unpack((await house.ask("GET", MANIFEST)).content).files == ONE


async def test_a_manifest_of_another_time(house: FlagsHouse) -> None:
    files = {path: content.replace(b'"0.1"', b'"1.0"') for path, content in ONE.items()}
    error = (await push(house, files, status=422))["error"]
    assert (error["code"], error["details"]) == ("schema_version_mismatch", {"found": "1.0", "supported": "0.x"})
    later = {path: content.replace(b'"0.1"', b'"0.2"') for path, content in ONE.items()}
    await push(house, later)


async def test_a_manifest_for_another_namespace(house: FlagsHouse) -> None:
    named = manifest({"a": flag()}, namespace=b'schema_version = "0.1"\n\n[namespace]\nslug = "growth"\n')
    error = (await push(house, named, status=422))["error"]
    assert [one["code"] for one in error["details"]["lint"]["errors"]] == ["E901"]


async def test_lint_pushes_nothing(house: FlagsHouse) -> None:
    for files, passed in ((ONE, True), (WRONG, False)):
        answer = (await house.ask("POST", f"{MANIFEST}/lint", **form(files))).json()
        assert list(answer) == ["passed", "lint", "request_id"]
        assert answer["passed"] is passed
        assert bool(answer["lint"]["errors"]) is not passed
    await house.refused(404, "manifest_not_found", "GET", MANIFEST)


async def test_a_writer_says_over_which_version(house: FlagsHouse) -> None:
    await push(house, ONE, **over(0))
    error = (await push(house, TWO, status=409, **over(0)))["error"]
    assert (error["code"], error["details"]) == ("version_conflict", {"current_version": 1})
    await push(house, TWO, **over(1))
    assert (await push(house, WRONG, status=409, **over(1)))["error"]["code"] == "version_conflict"  # before linting
    await push(house, ONE)
    for version in ("", "x", "-1", "1.0", "9" * 20):
        assert (await push(house, ONE, status=400, **over(version)))["error"]["code"] == "invalid_request"


async def test_of_writers_over_the_same_version_one_wins(house: FlagsHouse) -> None:
    await push(house, ONE)
    answers = await asyncio.gather(
        *(house.ask("PUT", MANIFEST, **form(manifest({f"f{n}": flag()})), **over(1)) for n in range(6))
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 5]
    assert (await house.call("GET", f"{MANIFEST}/versions"))["versions"][0]["version"] == 2


async def test_without_it_all_come_one_after_the_other(house: FlagsHouse) -> None:
    answers = await asyncio.gather(*(house.ask("PUT", MANIFEST, **form(manifest({f"f{n}": flag()}))) for n in range(6)))
    assert sorted(answer.json()["version"] for answer in answers) == [1, 2, 3, 4, 5, 6]


async def test_history(house: FlagsHouse) -> None:
    writer = await house.call(
        "POST", "/tokens", {"type": "namespace-write", "name": "w", "tenant": "acme", "namespace": "billing"}
    )
    await push(house, ONE, token=writer["secret"])
    house.clock.advance(1)
    await push(house, TWO)
    await push(house, ONE)
    listed = await house.call("GET", f"{MANIFEST}/versions")
    assert [one["version"] for one in listed["versions"]] == [3, 2, 1]
    assert listed["next_cursor"] is None
    first = listed["versions"][2]
    assert first == {
        "version": 1,
        "uploaded_at": "2023-11-14T22:13:20.000Z",
        "uploaded_by": writer["token"]["id"],
        "flag_count": 1,
        "segment_count": 0,
        "file_count": 1,
        "bytes": len(ONE["flags/a.toml"]),
        "closure_hash": first["closure_hash"],
        "warning_count": 1,
        "restored_version": None,
        "files_available": True,
    }
    assert listed["versions"][0]["closure_hash"] == first["closure_hash"] != listed["versions"][1]["closure_hash"]
    one = await house.call("GET", f"{MANIFEST}/versions/1")
    assert {**one, "request_id": 0} == {**first, "request_id": 0}
    for number, status, code in (
        ("4", 404, "version_not_found"),
        ("0", 400, "invalid_request"),
        ("x", 400, "invalid_request"),
    ):
        await house.refused(status, code, "GET", f"{MANIFEST}/versions/{number}")
    page = await house.call("GET", f"{MANIFEST}/versions?limit=2")
    rest = await house.call("GET", f"{MANIFEST}/versions?limit=2&cursor={page['next_cursor']}")
    assert [one["version"] for one in page["versions"] + rest["versions"]] == [3, 2, 1]
    assert rest["next_cursor"] is None


async def test_a_rollback_is_a_new_version_with_old_files(house: FlagsHouse) -> None:
    await push(house, ONE)
    await push(house, TWO)
    back = await house.call("POST", f"{MANIFEST}/rollback", {"version": 1}, status=200)
    assert (back["version"], back["restored_version"], back["flag_count"]) == (3, 1, 1)
    assert unpack((await house.ask("GET", MANIFEST)).content).files == ONE
    assert (await house.call("GET", f"{MANIFEST}/versions/3"))["restored_version"] == 1
    answer = await house.ask("POST", f"{MANIFEST}/rollback", json={"version": 2}, **over(2))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "version_conflict")
    await house.refused(404, "version_not_found", "POST", f"{MANIFEST}/rollback", {"version": 4})
    for body in ({}, {"version": 0}, {"version": "1"}, {"version": 1, "x": 1}):
        await house.refused(400, "invalid_request", "POST", f"{MANIFEST}/rollback", body)


async def test_files_that_are_gone_cannot_come_back(house: FlagsHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 1)
    await push(house, ONE)
    house.clock.advance(31 * 86_400)
    await push(house, TWO)
    await push(house, TWO)
    assert (await house.call("GET", f"{MANIFEST}/versions/1"))["files_available"] is False
    await house.refused(410, "closure_unavailable", "POST", f"{MANIFEST}/rollback", {"version": 1})


ASKED = [
    ("GET", "", "manifest.read"),
    ("GET", "/versions", "manifest.read"),
    ("GET", "/versions/1", "manifest.read"),
    ("POST", "/lint", "manifest.read"),
    ("PUT", "", "manifest.write"),
    ("POST", "/rollback", "rollback"),
]


async def test_who_may(house: FlagsHouse) -> None:
    await push(house, ONE)
    await house.call("POST", "/tenants/acme/namespaces", {"slug": "growth"})
    may = {
        "namespace-read": {"manifest.read"},
        "namespace-write": {"manifest.read", "manifest.write", "rollback"},
        "namespace-client": set(),
        "tenant-admin": {"manifest.read", "manifest.write", "rollback"},
    }
    for kind, permissions in may.items():
        secret = await house.mint(kind)
        for method, path, permission in ASKED:
            body: dict[str, Any] = (
                {"json": {"version": 1}} if path == "/rollback" else {} if method == "GET" else form(ONE)
            )
            answer = await house.ask(method, MANIFEST + path, token=secret, **body)
            assert answer.status_code == (200 if permission in permissions else 403), (kind, method, path, answer.text)
            other = MANIFEST.replace("acme", "other") + path
            assert (await house.ask(method, other, token=secret, **body)).status_code == 403
            if kind != "tenant-admin":
                other = MANIFEST.replace("billing", "growth") + path
                assert (await house.ask(method, other, token=secret, **body)).status_code == 403
    for method, path, _ in ASKED:
        assert (await house.ask(method, MANIFEST + path, token="")).status_code == 401
        assert (await house.ask(method, MANIFEST.replace("billing", "nowhere") + path)).status_code == 404


async def test_every_version_is_in_the_log_of_changes(house: FlagsHouse) -> None:
    await push(house, ONE)
    made = await push(house, TWO)
    await push(house, WRONG, status=422)
    await house.call("POST", f"{MANIFEST}/rollback", {"version": 1})
    entries = (await house.call("GET", "/audit"))["entries"][-3:]
    assert [(one["action"], one["subject"]) for one in entries] == [
        ("manifest.push", "acme/billing@1"),
        ("manifest.push", "acme/billing@2"),
        ("manifest.rollback", "acme/billing@3"),
    ]
    assert entries[1]["request_id"] == made["request_id"]
    assert entries[1]["before"] == {"version": 1}
    assert entries[1]["after"] == {"version": 2, "flag_count": 2, "segment_count": 1}
    assert entries[2]["after"]["restored_version"] == 1
    assert (entries[2]["tenant"], entries[2]["namespace"]) == ("acme", "billing")


async def test_a_crash_between_a_version_and_its_line_leaves_the_line_owed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = await FlagsHouse.opened(data=tmp_path)
    await house.furnish()

    async def crash(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(audit.Debts, "pay", crash)
        await push(house, ONE, status=500)
    await house.close()
    again = await FlagsHouse.opened(data=tmp_path)
    lines = [
        one["subject"] for one in (await again.call("GET", "/audit"))["entries"] if one["action"] == "manifest.push"
    ]
    assert lines == ["acme/billing@1"]
    await again.close()
    once = await FlagsHouse.opened(data=tmp_path)
    entries = (await once.call("GET", "/audit"))["entries"]
    assert sum(one["action"] == "manifest.push" for one in entries) == 1
    await once.close()


async def test_a_line_that_the_store_refuses_comes_with_the_next(
    house: FlagsHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = house.assembly.log.append

    async def refuse(one: Append) -> Receipt:
        if one.stream == audit.STREAM:
            raise WriteFailed("the disk is full")
        return await append(one)

    with monkeypatch.context() as patch:
        patch.setattr(house.assembly.log, "append", refuse)
        assert (await push(house, ONE))["version"] == 1  # it is stored, so it is answered
    await push(house, TWO)
    lines = [
        one["subject"] for one in (await house.call("GET", "/audit"))["entries"] if one["action"] == "manifest.push"
    ]
    assert lines == ["acme/billing@1", "acme/billing@2"]


async def test_others_are_served_while_a_big_manifest_is_read(house: FlagsHouse) -> None:
    big = manifest({f"f{number}": flag(note=f"{number}") for number in range(2_000)})
    pushing = asyncio.ensure_future(push(house, big))
    served = 0
    while not pushing.done():
        await house.call("GET", "/tenants")
        served += 1
        await asyncio.sleep(0)
    assert (await pushing)["flag_count"] == 2_000
    assert served >= 5


def test_versions_survive_a_kill(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--superadmin-token-file", str(tmp_path / "token")) as server:
        headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text().strip()}"}

        def ask(method: str, path: str, **more: Any) -> httpx.Response:
            return httpx.request(method, f"{server.base_url}/api/v1{path}", headers=headers, timeout=30, **more)

        ask("POST", "/tenants", json=ACME)
        ask("POST", "/tenants/acme/namespaces", json={"slug": "billing"})
        for files in (ONE, TWO, ONE):
            assert ask("PUT", MANIFEST, **form(files)).status_code == 200
        before = [ask("GET", path).json() for path in (f"{MANIFEST}/versions", "/audit")]
        server.kill()
        server.start()
        after = [ask("GET", path).json() for path in (f"{MANIFEST}/versions", "/audit")]
        assert [{**one, "request_id": 0} for one in after] == [{**one, "request_id": 0} for one in before]
        assert unpack(ask("GET", MANIFEST).content).files == ONE
        assert ask("POST", f"{MANIFEST}/rollback", json={"version": 2}).json()["version"] == 4
        assert unpack(ask("GET", MANIFEST).content).files == TWO
