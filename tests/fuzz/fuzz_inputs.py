"""What the fuzzer begins with, and how it bends it: the conformance cases, the sample plans, and odd pieces of text."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from conformance_cases import CHECKOUT, COPY, fixed_key
from pqcota_provision.errors import PqcotaError
from pqcota_provision.plan.model import FIELDS, Field, FinalizedPlan, WireEnum
from pqcota_provision.plan.protojson import load_plan
from pqcota_provision.plan.timestamp import Timestamp

Text = TypeVar("Text", str, bytes)

MAX_LENGTH = 1 << 15
# What no string of a plan may hold.
_REFUSED = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def _conformance_cases() -> Iterator[dict[str, Any]]:
    for path in sorted(COPY.glob("*.jsonl")):
        yield from map(json.loads, path.read_text(encoding="utf-8").strip("\n").split("\n"))


def _corpus() -> Iterator[bytes]:
    import base64

    for case in _conformance_cases():
        yield base64.b64decode(case["plan_base64"]) if "plan_base64" in case else case["plan"].encode("utf-8")
        if signed := case["approve"].get("signed"):
            yield json.dumps(signed, ensure_ascii=False).encode("utf-8")
    for path in sorted((CHECKOUT / "examples" / "plans").glob("*.json")):
        yield path.read_bytes()


def _documents(corpus: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for data in corpus:
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and len(data) < MAX_LENGTH:
            yield document


def _is_plan(document: dict[str, Any]) -> bool:
    try:
        load_plan(json.dumps(document))
    except PqcotaError:
        return False
    return True


PLANS = tuple(data for data in _corpus() if len(data) < MAX_LENGTH)
DOCUMENTS = tuple(_documents(PLANS))
SOUND_DOCUMENTS = tuple(document for document in DOCUMENTS if _is_plan(document))
ARTIFACTS = tuple(
    sorted(
        {
            action["configArtifact"]
            for document in DOCUMENTS
            for action in document.get("actions") or ()
            if isinstance(action, dict) and isinstance(action.get("configArtifact"), str)
        }
    )
)

ODD_PIECES = (
    *("\0", "\x1b[31m", "\x7f", "\x85", "\r\n", "\n", "\t", " ", "\u2028", "\ufeff", "\u202e", "\u200b", "\u3164"),
    *("\ud800", "\udc00", "\U0010ffff", "\N{FULLWIDTH DIGIT ONE}", "é", '"', "'", "\\", "`", "$", "{{ x }}", "{% x %}"),
    *(
        "%s",
        "{0}",
        "#",
        ":",
        "=",
        ",",
        ";",
        "/",
        "@",
        "..",
        "~",
        "*",
        "[",
        "]",
        "{",
        "}",
        "-",
        "!unsafe",
        "null",
        "9" * 30,
    ),
)

words = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789._-+", max_size=12)
texts = st.lists(words | st.sampled_from(ODD_PIECES) | st.text(max_size=4), max_size=8).map("".join)
long_texts = st.tuples(texts, st.integers(1, 4000)).map(lambda drawn: (drawn[0] * drawn[1])[:MAX_LENGTH])
long_lines = st.tuples(texts, st.integers(1, 100)).map(lambda drawn: (drawn[0] * drawn[1])[:500])

_edits = ("insert", "delete", "replace", "repeat", "cut", "splice")


@st.composite
def edited(draw: st.DrawFn, seeds: Sequence[Text], pieces: Sequence[Text]) -> Text:
    """A text of the corpus with up to five edits."""
    text: Text = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 24)))
        edit = draw(st.sampled_from(_edits))
        if edit == "insert":
            text = text[:start] + draw(st.sampled_from(pieces)) + text[start:]
        elif edit == "delete":
            text = text[:start] + text[end:]
        elif edit == "replace":
            text = text[:start] + draw(st.sampled_from(pieces)) + text[end:]
        elif edit == "repeat":
            text = text[:start] + text[start:end] * draw(st.integers(2, 2000)) + text[end:]
        elif edit == "cut":
            text = text[:start]
        else:
            other: Text = draw(st.sampled_from(seeds))
            text = text[:start] + other[draw(st.integers(0, len(other))) :]
        text = text[:MAX_LENGTH]
    return text


FIELD_NAMES = tuple(
    sorted({name for fields in FIELDS.values() for field in fields for name in (field.name, field.json_name)})
)
ENUM_NAMES = tuple(
    value.wire_name
    for fields in FIELDS.values()
    for field in fields
    if issubclass(field.kind, WireEnum)
    for value in field.kind
)
_telling_texts = st.sampled_from(
    (
        *("node-1", "10.0.0.7", "2001:db8::7", "all", "localhost", "fe80::1%eth0"),
        *("oqsprovider", "BC", "BCFIPS", "fips", "pkcs11", "acme-pqc", "acme_pqc", "../x", "com.example.Provider"),
        *("ML-KEM", "Kyber", "HQC", "ML-DSA", "2026-01-02T03:04:05.678901234Z", "0001-01-01T00:00:00+00:01"),
        *("systemctl stop app", "echo '{{ x }}'", "cat <<E\nx\nE\n", "a" * 64, "0" * 64, "pqcota-snapshot-content/v1"),
    )
)
TIMES = (
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.678901234+24:60",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999-00:00",
    "2000-02-29T23:59:59.1Z",
)
NUMBERS = ("1e999999999", "-1e999999999", "1e-999999999", "-0", "1.50e1", "9" * 5000, "2147483648")
_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**33), 2**33)
    | st.sampled_from((1e400, -0.0, 1.5, 10**40))
    | st.sampled_from(NUMBERS)
    | st.sampled_from(ENUM_NAMES)
    | st.sampled_from(ARTIFACTS)
    | _telling_texts
    | texts
)
_json_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELD_NAMES), inner, max_size=4),
    max_leaves=6,
)


_field_texts = _telling_texts | st.sampled_from(ARTIFACTS) | texts.map(lambda text: _REFUSED.sub("", text)) | texts


def _value_of(field: Field) -> st.SearchStrategy[Any]:
    """What a field may hold by its type."""
    kind = field.kind
    if kind is str:
        value: st.SearchStrategy[Any] = _field_texts
    elif kind is Timestamp:
        value = st.sampled_from(TIMES)
    elif issubclass(kind, WireEnum):
        names = st.sampled_from([value.wire_name for value in kind])
        value = names | names | st.sampled_from(NUMBERS) | st.integers(-2, 9)
    elif kind in FIELDS:
        value = st.fixed_dictionaries({}, optional={inner.json_name: _value_of(inner) for inner in FIELDS[kind]})
    else:
        value = st.integers(-(2**31), 2**31) | st.sampled_from(NUMBERS)
    return st.lists(value, max_size=3) if field.repeated else value


_FIELD_VALUES = {message: [(field, _value_of(field)) for field in FIELDS[message]] for message in FIELDS}
_DOCUMENT_EDITS = (*("set",) * 8, *("delete",) * 2, "repeat", "anything")


def _messages(value: Any, message: type) -> Iterator[tuple[dict[str, Any], type]]:
    """Yield every object in a document that stands where a message of the contract does."""
    if isinstance(value, dict):
        yield value, message
        for field in FIELDS[message]:
            inner = value.get(field.json_name)
            if field.kind in FIELDS:
                for item in inner if isinstance(inner, list) else (inner,):
                    yield from _messages(item, field.kind)


@st.composite
def _edited_documents(draw: st.DrawFn) -> bytes:
    """A plan of the corpus with fields set, taken away or repeated, so that it is JSON still and often a plan."""
    document = copy.deepcopy(draw(st.sampled_from(SOUND_DOCUMENTS) | st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 5))):
        container, message = draw(st.sampled_from(list(_messages(document, FinalizedPlan))))
        field, values = draw(st.sampled_from(_FIELD_VALUES[message]))
        edit = draw(st.sampled_from(_DOCUMENT_EDITS))
        held = container.get(field.json_name)
        if edit == "delete":
            container.pop(field.json_name, None)
        elif edit == "repeat" and isinstance(held, list) and held:
            held.append(copy.deepcopy(draw(st.sampled_from(held))))
        elif edit == "anything":
            container[draw(st.sampled_from(FIELD_NAMES))] = draw(_json_values)
        else:
            container[field.json_name] = draw(values)
    text = json.dumps(document, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        for number in NUMBERS:
            text = text.replace(f'"{number}"', number)
    return text.encode("utf-8", "surrogatepass")[: MAX_LENGTH * 2]


JSON_PIECES = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"NaN", b"-Infinity", b"1e999999999", b"-0"),
    *(b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0", b"\x1f", b"\\u0000", b"\\ud800", b"\\x", b"//", b" ", b"\n"),
    *(b'"id":"x",', b'"status":3,', b'"finalizedAt":"2026-01-02T03:04:05Z",', b'"priority":"-1e1",', b'"@type":"x",'),
    *(f'"{name}":'.encode() for name in FIELD_NAMES),
)
plan_bytes = edited(PLANS, JSON_PIECES) | _edited_documents() | _edited_documents() | st.binary(max_size=64)

_KEY = fixed_key()
KEY_TEXTS = (
    _KEY.public.to_text(),
    _KEY.to_text(),
    "A" * 43 + "=",
    "A" * 44,
    "7" * 43 + "=",
    "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "7P///////////////////////////////////////38=",
)
KEY_PIECES = (*ODD_PIECES, *KEY_TEXTS, "alice", "bob", "ü", "A", "Q==", "-_", "\u00a0")
key_texts = edited(KEY_TEXTS, KEY_PIECES) | texts
key_maps = st.lists(
    st.builds("{}{}{}".format, words | texts, st.sampled_from(("=", " = ", "", "==", ":")), key_texts), max_size=4
).map(",".join) | edited((f"alice={KEY_TEXTS[0]}", f"alice={KEY_TEXTS[0]},bob={KEY_TEXTS[2]}"), KEY_PIECES)

time_texts = edited(TIMES, (*ODD_PIECES, *"0123456789TZtz+-:.", "T24:00", "-00-", "60")) | texts

CONFIG_PIECES = (
    *(
        "[",
        "]",
        "[ sect ]",
        "=",
        "==",
        "::",
        "\\",
        "\\\n",
        "\n",
        "\r\n",
        "#",
        ";",
        '"',
        "'",
        "`",
        " ",
        "\t",
        "\0",
        "\ufeff",
    ),
    *(
        "$",
        "$x",
        "${x}",
        "$(x)",
        "${x::y}",
        "$ENV::HOME",
        "${",
        "a=$a$a\n",
        ".include /x\n",
        ".include = x\n",
        ".pragma x",
    ),
    *("openssl_conf", "providers", "ssl_conf", "system_default", "default", "activate", "module", "Groups = x25519\n"),
    *(
        "security.provider.2=x\n",
        f"security.provider.{'9' * 5000}=x\n",
        "jdk.tls.namedGroups=x\n",
        "!",
        ":",
        "/",
        "?*-x25519",
        "é",
        "\u2028",
        "\ud800",
    ),
)
_config_names = st.sampled_from(("a", "b")) | st.sampled_from(
    ("openssl_conf", "providers", "activate", "module", "a::b")
)
_config_values = st.lists(
    st.sampled_from(("a", "$a", "$b")) | st.sampled_from(("${b}", "$(a::b)", "$ENV::a", "/", '"', "\\", "1", " ")),
    max_size=4,
).map("".join)
_config_lines = st.tuples(
    st.builds("{}{}{}\n".format, _config_names, st.sampled_from((" = ", "=", " = ", " ")), _config_values)
    | st.sampled_from(("[a]\n", "[ b ]\n", "[default]\n")),
    st.integers(1, 3) | st.integers(1, 60),
).map(lambda drawn: drawn[0] * drawn[1])
config_texts = (
    st.lists(_config_lines, max_size=6).map("".join)
    | edited((*ARTIFACTS, "a = xxxxxxxx\n"), CONFIG_PIECES)
    | long_texts
)

NAMES = (
    *("web-1", "web_1.example.com", "2001:db8::7", "::ffff:192.0.2.7", "fe80::1%eth0", "192.0.2.7", "all", "ungrouped"),
    *(
        "oqsprovider",
        "libacme_pqc.2",
        "c++",
        "com.example.Provider$Inner",
        "default",
        "acme-corp",
        "linux/amd64",
        "1h30m",
    ),
)
name_texts = edited(NAMES, (*ODD_PIECES, *"abc019.:-_%+$", "::", "0:", "ffff:")) | texts | long_texts

SECRETS = ("Zq7XkVw", "Vw9JpQz", "Kx4QjZv")
_separators = st.sampled_from(("", *"@:/?#&=%'\"\\ ,;.[]{}+~", "%40", "\t", "é", "%zz"))
passwords = st.lists(st.sampled_from(SECRETS), min_size=1, max_size=3).flatmap(
    lambda parts: st.lists(_separators, min_size=len(parts) + 1, max_size=len(parts) + 1).map(
        lambda marks: marks[0] + "".join(part + mark for part, mark in zip(parts, marks[1:], strict=True))
    )
)

YAML_FILES = (
    "services:\n  - app: payments\n    unit: payments.service\n    module: oqsprovider.so\n    provider: oqsprovider\n"
    '    version: "1.10"\n    ready: tcp:443\n',
    "after: 24h\nprove:\n  prover: canary-1\n  key_file: /etc/pqcota/prover.key\n  apps: [payments]\n"
    "require:\n  - app: ledger\n    provers: [canary-1, canary-2]\n",
)
YAML_PIECES = (
    *(
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        f"%YAML {'9' * 5000}.1\n",
        "%TAG ! !\n",
        "&a ",
        "*a",
        "<<: *a\n",
        "? ",
        "!!int ",
        "!x ",
    ),
    *(
        '"\\UFFFFFFFF"',
        '"\\ud800"',
        '"\\x00"',
        "[" * 60,
        "{",
        "}",
        "]",
        "- ",
        ": ",
        "|\n",
        ">-\n",
        "#",
        "'",
        '"',
        "\t",
        "~",
    ),
    *(
        "services",
        "app",
        "unit",
        "module",
        "provider",
        "version",
        "ready",
        "after",
        "prove",
        "require",
        "provers",
        "apps",
    ),
    *ODD_PIECES,
)
yaml_texts = edited(YAML_FILES, YAML_PIECES) | texts

PROOF = json.dumps(
    {
        "app": "payments",
        "provider": "oqsprovider",
        "platform": "linux/amd64",
        "sha256": "0" * 64,
        "version": "1",
        "prover": "canary-1",
        "activeSince": "2026-01-02T03:04:05Z",
        "provenAt": "2026-01-03T03:04:05Z",
        "signature": "ed25519:" + "A" * 86 + "==",
    }
).encode()
RECORD = json.dumps(
    {
        "id": "p1:a1",
        "nodeId": "node-1",
        "appKeys": ["a"],
        "before": {"modules": ["openssl@3.0.19"], "providerChain": ["SUN"]},
        "status": "PROVISIONING_STATUS_STAGED",
        "at": "2026-01-02T03:04:05.000000001Z",
        "snapshotResolutions": [{"submitted": {"sourceNodeId": "n", "snapshotId": "s"}, "reason": "x"}],
    }
).encode()
FINDINGS = json.dumps(
    [
        {"id": "f", "appKeys": ["a"], "openssl": {"lib": "openssl", "version": "3.0.19"}},
        {"id": "g", "jca": {"jdkVendor": "x", "providerSet": ["SUN", "SunRsaSign"]}},
    ]
).encode()
json_files = edited((PROOF, RECORD, FINDINGS), (*JSON_PIECES, b'"appKeys":[', b'"openssl":', b'"jca":{', b"1" * 5000))
