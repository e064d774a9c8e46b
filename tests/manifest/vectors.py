"""The files of the worked examples, to the byte."""

from __future__ import annotations

NAMESPACE = b'schema_version = "0.1"\n\n[namespace]\nslug = "billing"\n'
FLAG_WITHOUT_RULES = (
    b'schema_version = "0.1"\n\n[flag]\ntype = "boolean"\n\n[flag.variants]\non = true\noff = false\n\n'
    b'[flag.environments._]\nvariant = "off"\n'
)
FLAG = FLAG_WITHOUT_RULES + b'\n[[flag.environments._.rules]]\nsegment = "employees"\nvariant = "on"\n'
SEGMENT = (
    b'schema_version = "0.1"\n\n[segment]\n\n[segment.predicate]\n'
    b'attribute = "user.email"\nop = "ends_with"\nvalue = "@example.com"\n'
)

FLAG_PATH = "flags/checkout-redesign.toml"
SEGMENT_PATH = "segments/employees.toml"

A = {"namespace.toml": NAMESPACE, FLAG_PATH: FLAG, SEGMENT_PATH: SEGMENT}
B = {"namespace.toml": NAMESPACE, FLAG_PATH: FLAG_WITHOUT_RULES, SEGMENT_PATH: SEGMENT}

HASHES = {
    "V0": ({}, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    "V1": (A, "sha256:48e7d9b8e70e689891646e7f9e458d58d1d20ca431988fbbf0a3d09aa7c42771"),
    "V2": (
        {"namespace.toml": NAMESPACE, FLAG_PATH: FLAG_WITHOUT_RULES},
        "sha256:ae5b0efac75079ffb0feed74a200eac1955a7e75e26fc8436ba7f6adb0603888",
    ),
    "V3": ({"namespace.toml": NAMESPACE}, "sha256:ddeaabae549b19e5a241cd72aeae340583fd6901602e4ca42cafaed0ae4f7049"),
    "V4": (
        {"flags/a.toml": b"A", "flags/a-b.toml": b"AB", "namespace.toml": b"N"},
        "sha256:8256dad7956fbe96f6b1f0b493c0927d29e3cf53940bf2e760a32a4e7e03abaf",
    ),
    "V5": (
        {"flags/a.toml": b"", "namespace.toml": b"", "segments/a.toml": b""},
        "sha256:8dcf99ca36556745f16f39f3d9914ac20f33f85dbee287b0a725f87e1e1c1c37",
    ),
    "V6": (
        {**A, "namespace.toml": NAMESPACE.replace(b"\n", b"\r\n")},
        "sha256:c04bdb43ecb7a34401775bc1d2ff152bad132e95db858b1ae6d98376f77117c2",
    ),
}
WRONG_ORDER = "sha256:b561bc8e09dbfbf8e72e58bed7db6e1859286bda7a24da6c3fcde758dc40a274"  # V4, sorted by keys

WORKED_DATA = (
    b'{"protocol":"v2","namespace":"billing","version":42,"prev_version":41,'
    b'"prev_closure_hash":"sha256:48e7d9b8e70e689891646e7f9e458d58d1d20ca431988fbbf0a3d09aa7c42771",'
    b'"closure_hash":"sha256:ae5b0efac75079ffb0feed74a200eac1955a7e75e26fc8436ba7f6adb0603888","delivery":"inline",'
    b'"files":[{"path":"flags/checkout-redesign.toml","op":"modified",'
    b'"sha256":"9a00f156ff7f697eae46038d01afe9ffb56fd5f46fc7857be690eb9ed7151bb1",'
    b'"content_b64":"c2NoZW1hX3ZlcnNpb24gPSAiMC4xIgoKW2ZsYWddCnR5cGUgPSAiYm9vbGVhbiIKCltmbGFnLnZhcmlhbnRzXQpvbiA9IHRydWUK'
    b'b2ZmID0gZmFsc2UKCltmbGFnLmVudmlyb25tZW50cy5fXQp2YXJpYW50ID0gIm9mZiIK"},'
    b'{"path":"segments/employees.toml","op":"leave"}]}'
)
WORKED_EVENT = b"event: version\nid: billing:42\ndata: " + WORKED_DATA + b"\n\n"
