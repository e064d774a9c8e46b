"""`GET .../closure`: what opens it, what it answers, and that the same question always has the same answer."""

from __future__ import annotations

import asyncio
import io
import tarfile
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest

from seamark.flags.signing import Claim, Signer
from seamark.manifest.archive import pack, tar_size, unpack
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.subscription import parse_flag_list
from seamark.testing.rig import LogRig
from tests.flags.manifests import flag, manifest, segment
from tests.flags.stage import AUTHOR, Answer, Stage
from tests.manifest import vectors

EVERYTHING = "version=1&subscription=Kg"
FILES = manifest({"a": flag(segment="s"), "b": flag()}, {"s": segment(), "t": segment()})
OF_A = {path: FILES[path] for path in ("flags/a.toml", "segments/s.toml")}


@pytest.fixture
async def stage(rig: LogRig) -> AsyncIterator[Stage]:
    stage = await Stage.opened(rig, "billing", "growth", "empty")
    await stage.found("billing", tenant="other")
    await stage.commit(FILES)
    yield stage
    stage.close()


def of(flags: str, version: int = 1) -> str:
    return f"version={version}&subscription={parse_flag_list(flags).token}"


async def signed(stage: Stage, flags: str = "a") -> dict[str, str]:
    """The query of an address that an event told the reader."""
    listener = await stage.watch(f"ns=billing:{flags}")
    return dict(parse_qsl(urlsplit(listener.last.body["snapshot_url"]).query))


def code(answer: Answer) -> tuple[int, str]:
    return answer.error[:2]


# -- with a key


async def test_a_closure_is_an_archive(stage: Stage) -> None:
    answer = await stage.closure(of("a"))
    assert (answer.status, answer.body) == (200, pack(OF_A))
    assert answer.headers == {
        "content-type": "application/x-tar",
        "etag": f'"v1-{closure_hash(index_of(OF_A))}"',
        "cache-control": "private, max-age=60",
    }
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        assert archive.getnames() == ["flags/a.toml", "segments/s.toml"]


async def test_everything_is_the_whole_manifest(stage: Stage) -> None:
    assert unpack((await stage.closure(EVERYTHING)).body).files == FILES


async def test_what_is_not_there_is_an_archive_of_nothing(stage: Stage) -> None:
    answer = await stage.closure(of("unknown"))
    assert unpack(answer.body) == ({}, ())
    assert answer.headers["etag"] == f'"v1-{vectors.HASHES["V0"][1]}"'


async def test_a_list_need_not_be_canonical(stage: Stage) -> None:
    token = urlsafe_b64encode(b"b,a,b").rstrip(b"=").decode()
    assert (await stage.closure(f"version=1&subscription={token}")).body == (await stage.closure(of("a,b"))).body


async def test_older_versions_stay_what_they_were(stage: Stage) -> None:
    before = await stage.closure(of("a"))
    await stage.commit(manifest({"a": flag()}))
    assert await stage.closure(of("a")) == before
    assert unpack((await stage.closure(of("a", 2))).body).files == manifest({"a": flag()})


async def test_the_same_question_has_the_same_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is made again, or by somebody else."""
    other = await stage.mint("namespace-read", namespace="billing")
    first = await stage.closure(of("a"))
    assert await stage.closure(of("a"), token=other) == first
    assert stage.count("seamark_flags_archives_total") == 1
    monkeypatch.setattr(stage.streaming.tars, "_tars", type(stage.streaming.tars._tars)(0))
    assert await stage.closure(of("a")) == first
    assert stage.count("seamark_flags_archives_total") == 2


# -- the order of what may be wrong, by requests with which everything after it is wrong as well


@pytest.mark.parametrize(
    "query",
    [
        "", "version=1", "subscription=Kg", "version=0&subscription=Kg", "version=-1&subscription=Kg",
        "version=&subscription=Kg", "version=1.0&subscription=Kg", "version=x&subscription=Kg",
        "version=%2B1&subscription=Kg", "version=+1&subscription=Kg", "version=01&subscription=Kg",
        "version=1&subscription=", "version=1&subscription=Kg%3D%3D", "version=1&subscription=*",
        "version=1&subscription=Kh", "version=1&subscription=K", "version=1&subscription=YSws",
        "version=1&subscription=" + urlsafe_b64encode(b"A").decode().rstrip("="),
        "version=1&subscription=" + urlsafe_b64encode(",".join(f"f{n}" for n in range(65)).encode()).decode().rstrip("="),
        "version=1&version=2&subscription=Kg", "version=1&subscription=Kg&subscription=Kg",
        "version=1&subscription=Kg&token=a&token=b",
    ],
)  # fmt: skip
async def test_1_the_parameters(stage: Stage, query: str) -> None:
    for token in ("", "nonsense", stage.reader):
        assert code(await stage.closure(query, token=token, tenant="nobody")) == (400, "invalid_request")


async def test_2_then_the_key(stage: Stage) -> None:
    for token in ("", "nonsense"):
        assert code(await stage.closure(of("a", 99), token=token, tenant="nobody")) == (401, "unauthorized")


async def test_3_then_what_it_permits(stage: Stage) -> None:
    client = await stage.mint("namespace-client", namespace="billing", environment="production")
    for token, tenant, namespace in (
        (client, "acme", "billing"),
        (stage.reader, "acme", "growth"),
        (stage.reader, "acme", "unknown"),
        (stage.reader, "other", "billing"),
        (stage.reader, "nobody", "billing"),
    ):
        answer = await stage.closure(of("a", 99), token=token, tenant=tenant, namespace=namespace)
        assert code(answer) == (403, "forbidden")


async def test_4_then_the_namespace(stage: Stage) -> None:
    admin = await stage.mint("tenant-admin")
    answer = await stage.closure(of("a", 99), token=admin, namespace="unknown")
    assert code(answer) == (404, "namespace_not_found")
    answer = await stage.closure(of("a", 99), token=await stage.mint("superadmin"), tenant="nobody")
    assert code(answer) == (404, "namespace_not_found")


@pytest.mark.parametrize("version", ["2", "99", "9223372036854775807", "9" * 30])
async def test_5_then_whether_there_is_such_a_version(stage: Stage, version: str) -> None:
    answer = await stage.closure(f"version={version}&subscription=Kg", if_none_match="*")
    assert code(answer) == (404, "namespace_not_found")


async def test_5_a_namespace_without_a_manifest_has_none(stage: Stage) -> None:
    admin = await stage.mint("tenant-admin")
    assert code(await stage.closure(EVERYTHING, token=admin, namespace="empty")) == (404, "namespace_not_found")


async def test_6_then_whether_its_files_are_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = (await stage.closure(of("a"))).headers["etag"]
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 1)
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSION_DAYS", 0)
    stage.clock.advance(86_400)
    await stage.commit(manifest({"a": flag(note="2")}))
    for headers in ({}, {"if_none_match": tag}):
        answer = await stage.closure(of("a"), **headers)
        assert answer.error == (410, "closure_unavailable", {"version": 1})
    assert (await stage.closure(of("a", 2))).status == 200


# -- what a client has already


@pytest.mark.parametrize(
    ("header", "same"),
    [
        ("{tag}", True),
        ("W/{tag}", True),
        ("*", True),
        ('"other", {tag}', True),
        ('W/"other",W/{tag} , "third"', True),
        ('"other"', False),
        ("", False),
        ("{tag}x", False),
        ("tag", False),
        ('"', False),
    ],
)
async def test_7_then_whether_the_client_has_it(stage: Stage, header: str, same: bool) -> None:
    first = await stage.closure(of("a"))
    tag = first.headers["etag"]
    answer = await stage.closure(of("a"), if_none_match=header.format(tag=tag))
    if same:
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["etag"] == tag
    else:
        assert answer == first


async def test_the_tag_of_another_version_with_the_same_files_is_another(stage: Stage) -> None:
    tag = (await stage.closure(of("a"))).headers["etag"]
    await stage.commit(FILES)
    answer = await stage.closure(of("a", 2), if_none_match=tag)
    assert answer.status == 200
    assert answer.headers["etag"] == tag.replace("v1-", "v2-")


async def test_no_archive_is_made_for_who_has_it(stage: Stage) -> None:
    assert (await stage.closure(of("a"), if_none_match="*")).status == 304
    assert stage.count("seamark_flags_archives_total") == 0


# -- with a signed token


async def test_an_address_opens_its_closure(stage: Stage) -> None:
    query = await signed(stage)
    answer = await stage.closure(urlencode(query), token="")
    assert (answer.status, answer.body) == (200, pack(OF_A))
    assert answer == await stage.closure(of("a")), "as a key does"


async def test_the_size_that_an_event_tells(stage: Stage) -> None:
    listener = await stage.watch("ns=billing:a")
    assert listener.last.body["snapshot_size_bytes"] == tar_size(OF_A)


INVALID = (401, "closure_token_invalid")


async def test_an_address_opens_nothing_else(stage: Stage) -> None:
    await stage.commit(FILES)
    query = {**await signed(stage), "version": "2"}
    assert (await stage.closure(urlencode(query), token="")).status == 200
    for changed in (
        {"version": "1"},
        {"version": "99"},
        {"subscription": "Kg"},
        {"subscription": parse_flag_list("a,b").token},
        {"token": query["token"][:-1]},
        {"token": query["token"].partition(".")[0]},
        {"token": ""},
        {"token": "nonsense"},
        {"token": "é"},
    ):
        assert code(await stage.closure(urlencode({**query, **changed}), token="")) == INVALID, changed
    for tenant, namespace in (("other", "billing"), ("acme", "growth"), ("acme", "unknown"), ("nobody", "billing")):
        assert code(await stage.closure(urlencode(query), token="", tenant=tenant, namespace=namespace)) == INVALID


async def test_a_list_must_be_written_as_it_was_signed(stage: Stage) -> None:
    query = await signed(stage, "a,b")
    query["subscription"] = urlsafe_b64encode(b"b,a").rstrip(b"=").decode()
    assert code(await stage.closure(urlencode(query), token="")) == INVALID
    assert (await stage.closure(f"version=1&subscription={query['subscription']}")).status == 200


async def test_an_address_is_good_for_a_minute(stage: Stage) -> None:
    query = urlencode(await signed(stage))
    await stage.pass_time(59, step=1)
    assert (await stage.closure(query, token="")).status == 200
    await stage.pass_time(1, step=1)
    assert code(await stage.closure(query, token="")) == INVALID
    assert code(await stage.closure(query)) == INVALID, "also beside a good key"


async def test_the_token_alone_decides(stage: Stage) -> None:
    query = await signed(stage)
    assert (await stage.closure(urlencode(query))).status == 200, "its owner may show who it is"
    assert (await stage.closure(urlencode(query), token="nonsense")).status == 200
    bad = urlencode({**query, "token": "bad"})
    assert code(await stage.closure(bad)) == INVALID


async def test_an_address_beside_the_key_of_another_is_refused(stage: Stage) -> None:
    query = urlencode(await signed(stage))
    for other in (
        await stage.mint("namespace-read", namespace="billing"),
        await stage.mint("superadmin"),
        await stage.mint("namespace-client", namespace="billing", environment="production"),
    ):
        assert code(await stage.closure(query, token=other)) == INVALID


async def test_an_address_dies_with_the_token_of_its_owner(stage: Stage) -> None:
    query = urlencode(await signed(stage))
    holder = stage.directory.find(stage.reader)
    assert holder is not None
    await stage.directory.revoke(holder.name, AUTHOR)
    assert code(await stage.closure(query, token="")) == INVALID


async def test_an_address_dies_when_its_owner_expires(stage: Stage) -> None:
    expires_at = stage.clock.now_ns() + 10 * 1_000_000_000
    token = await stage.mint("namespace-read", namespace="billing", expires_at=expires_at)
    query = urlsplit((await stage.watch(token=token)).last.body["snapshot_url"]).query
    assert (await stage.closure(query, token="")).status == 200
    await stage.pass_time(11, step=1)
    assert code(await stage.closure(query, token="")) == INVALID


@pytest.mark.parametrize("principal", ["", "nobody", "tok_01HV5XK1EFQT8N3JRDCP7MW04A"])
async def test_an_address_made_for_nobody_is_refused(stage: Stage, principal: str) -> None:
    """Even by whoever has the key of the server."""
    token = Signer(bytes(range(32)), stage.clock).sign(Claim(principal, "acme", "billing", 1, "*"))
    assert code(await stage.closure(f"{EVERYTHING}&token={quote(token)}", token="")) == INVALID


async def test_an_address_for_one_without_the_right_is_refused(stage: Stage) -> None:
    client = await stage.mint("namespace-client", namespace="billing", environment="production")
    holder = stage.directory.find(client)
    assert holder is not None
    token = Signer(bytes(range(32)), stage.clock).sign(Claim(holder.name, "acme", "billing", 1, "*"))
    assert code(await stage.closure(f"{EVERYTHING}&token={quote(token)}", token="")) == INVALID


async def test_an_address_of_a_version_that_is_pruned_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    query = urlencode(await signed(stage))
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 1)
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSION_DAYS", 0)
    stage.clock.step(86_400)
    await stage.commit(manifest({"a": flag(note="2")}))
    stage.clock.step(-86_400)
    assert code(await stage.closure(query, token="")) == (410, "closure_unavailable")


async def test_many_who_fetch_the_same_share_one(stage: Stage) -> None:
    answers = await asyncio.gather(*(stage.closure(of("a")) for _ in range(50)))
    assert len({answer.body for answer in answers}) == 1
    assert stage.count("seamark_flags_archives_total") == 1
