"""The form around an archive: one field, strictly read, whatever it is that comes."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import suppress
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import BadInput, Busy
from seamark.flags.manifest_docs import BASE as MANIFEST
from seamark.flags.manifest_docs import OPERATIONS
from seamark.flags.table import row
from seamark.flags.upload import Uploads, archive_in
from seamark.http.asgi import AsgiExchange
from seamark.http.routing import Match
from seamark.manifest.archive import pack
from tests.flags import manifests
from tests.flags.house import BASE, FlagsHouse

FILES = manifests.manifest({"a": manifests.flag()})
LINT = f"{BASE}/manifest/lint"


async def lint(house: FlagsHouse, **more: Any) -> httpx.Response:
    return await house.ask("POST", LINT, **more)


def form(*fields: tuple[str, bytes], boundary: str = "b") -> dict[str, Any]:
    parts = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"; filename="x"\r\nContent-Type: application/gzip\r\n\r\n%b\r\n'
        % (boundary.encode(), name.encode(), content)
        for name, content in fields
    ]
    body = b"".join(parts) + b"--%b--\r\n" % boundary.encode()
    return {"content": body, "headers": {"Content-Type": f"multipart/form-data; boundary={boundary}"}}


async def test_an_archive_in_a_form(house: FlagsHouse) -> None:
    answer = await lint(house, files={"archive": ("billing.tar.gz", pack(FILES), "application/gzip")})
    assert (answer.status_code, answer.json()["passed"]) == (200, True)
    archive = pack(FILES)
    for shape in (
        form(("archive", archive)),
        form(("note", b"x"), ("archive", archive)),
        form(("archive", archive), boundary="a" * 70),
        {**form(("archive", archive)), "content": form(("archive", archive))["content"] + b"an epilogue"},
    ):
        assert (await lint(house, **shape)).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        form(),
        form(("archiv", b"x")),
        form(("archive", pack(FILES)), ("archive", pack(FILES))),
        form(*[("archive", pack(FILES))], *[("x", b"")] * 9),
        {**form(("archive", pack(FILES))), "content": b""},
        {**form(("archive", pack(FILES))), "content": form(("archive", pack(FILES)))["content"][:-10]},
        {**form(("archive", pack(FILES))), "content": b"junk" + form(("archive", pack(FILES)))["content"]},
        {**form(("archive", pack(FILES))), "headers": {"Content-Type": "multipart/form-data; boundary=other"}},
        {**form(("archive", pack(FILES))), "headers": {"Content-Type": "multipart/form-data"}},
        {**form(("archive", pack(FILES))), "headers": {"Content-Type": "multipart/form-data; boundary="}},
        form(("archive", b"")),
        form(("archive", b"not gzip")),
        form(("archive", gzip.compress(b"not tar"))),
        form(("archive", pack(FILES)[:-20])),
    ],
)  # fmt: skip
async def test_what_is_no_form_with_an_archive(house: FlagsHouse, sent: dict[str, Any]) -> None:
    answer = await lint(house, **sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request"), answer.text


@pytest.mark.parametrize("media", [None, "application/gzip", "application/json", "multipart/mixed; boundary=b"])
async def test_it_must_be_a_form(house: FlagsHouse, media: str | None) -> None:
    headers = {} if media is None else {"Content-Type": media}
    answer = await lint(house, content=form(("archive", pack(FILES)))["content"], headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


async def test_bounds(house: FlagsHouse) -> None:
    most = limits.ARCHIVE_BYTES_MAX
    answer = await lint(house, **form(("archive", b"x" * (most + 1))))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "archive_too_large")
    assert answer.json()["error"]["details"] == {"max": most}
    answer = await lint(house, **form(("archive", b"x" * (most + limits.FORM_BYTES_MAX))))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "archive_too_large")
    bomb = gzip.compress(bytes(limits.ARCHIVE_UNPACKED_BYTES_MAX + limits.MIB))
    assert len(bomb) < limits.MIB
    answer = await lint(house, **form(("archive", bomb)))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "archive_too_large")
    files = {"flags/a.toml": bytes(limits.ARCHIVE_UNPACKED_BYTES_MAX + 1)}
    answer = await lint(house, **form(("archive", pack(files))))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "archive_too_large")


async def test_uploads_that_wait_have_a_bound(house: FlagsHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.limits.UPLOADS_WAITING_MAX", 0)
    answer = await lint(house, **form(("archive", pack(FILES))))
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert answer.headers["retry-after"] == "1"


async def test_the_uploads_of_one_tenant_leave_room_for_others(house: FlagsHouse) -> None:
    uploads = house.assembly.flags.uploads
    async with uploads.room("evil"):
        waiting = [asyncio.create_task(_sit(uploads, "evil")) for _ in range(limits.UPLOADS_PER_TENANT_MAX - 1)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await _sit(uploads, "evil")
        assert (await lint(house, **form(("archive", pack(FILES))))).status_code == 200
    await asyncio.gather(*waiting)
    await _sit(uploads, "evil")


async def _sit(uploads: Uploads, tenant: str) -> None:
    async with uploads.room(tenant):
        pass


@given(
    pieces=st.lists(
        st.sampled_from([b"--b", b"--", b"\r\n", b"\n", b'Content-Disposition: form-data; name="archive"', b"Content-Disposition:", b":", b"\x00\xff", b"x" * 300])
        | st.binary(max_size=20),
        max_size=20,
    )
)  # fmt: skip
def test_no_body_breaks_the_reader(pieces: list[bytes]) -> None:
    """Whatever comes is a form with an archive, or refused in words."""
    exchange = AsgiExchange(
        Match(row(OPERATIONS, "PUT", MANIFEST, lambda _: None), {}, "/"),
        method="PUT",
        query=b"",
        headers=[(b"content-type", b"multipart/form-data; boundary=b")],
        request_id="r",
    )
    exchange.body = b"".join(pieces)
    with suppress(BadInput):
        assert archive_in(exchange) in exchange.body
