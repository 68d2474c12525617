"""The YAML files a node's administrator writes, read strictly: the service registry and the proof policy."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from pqcota_provision.errors import NodeConfigMalformed
from pqcota_provision.plan.names import refuse_file_name
from pqcota_provision.playbook.paths import STAGING_DIRECTORY
from pqcota_provision.proof.durations import parse_duration
from pqcota_provision.proof.files import read_bounded, reason_of
from pqcota_provision.proof.probes import refuse_probe
from pqcota_provision.text import quote

DEFAULT_AFTER_SECONDS = 3600
MAX_CONFIG_BYTES = 1 << 20

_STAGING = "staging directory"

_UNIT_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.\\-@")
_UNIT_SUFFIX = ".service"
_MAX_UNIT_NAME = 255
_MAX_VERSION = 128
_MAX_PATH = 4095

Model = TypeVar("Model", bound=BaseModel)


def _plain_name(value: str) -> str:
    reason = refuse_file_name(value)
    if reason:
        raise ValueError(f"{quote(value)} {reason}")
    return value


def _unit_name(value: str) -> str:
    name = value if value.endswith(_UNIT_SUFFIX) else value + _UNIT_SUFFIX
    if not value or value.startswith("-") or len(name) > _MAX_UNIT_NAME or not _UNIT_CHARACTERS.issuperset(value):
        raise ValueError(f"{quote(value)} is no name of a systemd service, such as payments.service")
    return name


def _module_path(value: str, info: ValidationInfo) -> str:
    staging = (info.context or {}).get(_STAGING, STAGING_DIRECTORY)
    path = value if value.startswith("/") else f"{staging}/{_plain_name(value)}"
    parts = path[1:].split("/")
    if len(path) > _MAX_PATH or not path.isprintable() or any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"{quote(value)} is no absolute path of a file, without . and .. in it")
    return path


def _version(value: str) -> str:
    if len(value) > _MAX_VERSION or not value.isprintable():
        raise ValueError(f"{quote(value)} is no version: at most {_MAX_VERSION} visible characters")
    return value


def _probe(value: str) -> str:
    reason = refuse_probe(value)
    if reason:
        raise ValueError(f"{quote(value)} {reason}")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/") or "\0" in value:
        raise ValueError(f"{quote(value)} is no absolute path")
    return value


def _duration(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{quote(value)} {error}") from None


def _empty_as_none(value: object) -> object:
    return None if value == "" else value


def _empty_as_no_items(value: object) -> object:
    return () if value == "" else value


PlainName = Annotated[str, AfterValidator(_plain_name)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Service(_Strict):
    """An app on this node: its unit, and the provider module that the unit's main process should have mapped."""

    app: PlainName
    unit: Annotated[str, AfterValidator(_unit_name)]
    module: Annotated[str, AfterValidator(_module_path)]
    provider: PlainName
    version: Annotated[str, AfterValidator(_version)] = ""
    ready: Annotated[str, AfterValidator(_probe)] = ""


class _Registry(_Strict):
    services: Annotated[tuple[Service, ...], BeforeValidator(_empty_as_no_items)]

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> Self:
        seen: set[tuple[str, str, str]] = set()
        for service in self.services:
            binding = (service.app, service.unit, service.module)
            if binding in seen:
                raise ValueError(f"the app {quote(service.app)} has the same unit and module twice")
            seen.add(binding)
        return self


class Proving(_Strict):
    """This node mints proofs for these apps, as this prover, with the key in that file."""

    prover: PlainName
    key_file: Annotated[str, AfterValidator(_absolute)]
    apps: Annotated[tuple[PlainName, ...], Field(min_length=1)]


class Requirement(_Strict):
    """An app of this node that needs a proof by one of these provers."""

    app: PlainName
    provers: Annotated[tuple[PlainName, ...], Field(min_length=1)]


class ProofPolicy(_Strict):
    """What a node proves, what it requires, and how long a build must have run (``after``, in seconds)."""

    after: Annotated[int, BeforeValidator(_duration)] = DEFAULT_AFTER_SECONDS
    prove: Annotated[Proving | None, BeforeValidator(_empty_as_none)] = None
    require: Annotated[tuple[Requirement, ...], BeforeValidator(_empty_as_no_items)] = ()

    def proves(self, app: str) -> bool:
        """Tell whether this node mints proofs for the app."""
        return self.prove is not None and app in self.prove.apps

    def requires(self, app: str) -> bool:
        """Tell whether this node requires a proof for the app."""
        return any(requirement.app == app for requirement in self.require)


def load_services(text: str | bytes, *, staging_directory: str = STAGING_DIRECTORY) -> tuple[Service, ...]:
    """Read a service registry from YAML; a module that is a bare file name lies in the staging directory.

    Raises NodeConfigMalformed, naming every field that is missing, unknown or malformed.
    """
    return _load(_Registry, text, {_STAGING: staging_directory}).services


def load_policy(text: str | bytes) -> ProofPolicy:
    """Read a proof policy from YAML; an empty text is a policy that neither proves nor requires anything.

    Raises NodeConfigMalformed, naming every field that is missing, unknown or malformed.
    """
    return _load(ProofPolicy, text, {})


def read_services(path: Path, *, staging_directory: str = STAGING_DIRECTORY) -> tuple[Service, ...]:
    """Read the service registry in a file; raises NodeConfigMalformed, naming the file."""
    try:
        return load_services(read_bounded(path, MAX_CONFIG_BYTES), staging_directory=staging_directory)
    except OSError as error:
        raise NodeConfigMalformed(f"{quote(str(path), 240)} cannot be read: {reason_of(error)}") from None
    except NodeConfigMalformed as error:
        raise _in_file(path, error) from None


def read_policy(path: Path) -> ProofPolicy:
    """Read the proof policy in a file, which may be absent; raises NodeConfigMalformed, naming the file."""
    try:
        return load_policy(read_bounded(path, MAX_CONFIG_BYTES))
    except FileNotFoundError:
        return ProofPolicy()
    except OSError as error:
        raise NodeConfigMalformed(f"{quote(str(path), 240)} cannot be read: {reason_of(error)}") from None
    except NodeConfigMalformed as error:
        raise _in_file(path, error) from None


def _in_file(path: Path, error: NodeConfigMalformed) -> NodeConfigMalformed:
    return NodeConfigMalformed(f"{quote(str(path), 240)}: {problem}" for problem in error.problems)


class _EveryScalarIsText(yaml.BaseLoader):
    """Keeps a version such as 1.10 as it was written, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {quote(key.value)} stands twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _load(model: type[Model], text: str | bytes, context: Mapping[str, str]) -> Model:
    document = _parse_yaml(text)
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise NodeConfigMalformed("the file is no mapping of keys to values")
    try:
        return model.model_validate(document, context=dict(context))
    except ValidationError as error:
        raise NodeConfigMalformed(_problem(details["loc"], details) for details in error.errors()) from None


def _parse_yaml(text: str | bytes) -> object:
    try:
        # A BaseLoader constructs nothing but strings, lists and dicts.
        return yaml.load(text, _EveryScalarIsText)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NodeConfigMalformed(f"{place}{error.problem or 'no YAML here'}") from None
    except yaml.YAMLError as error:
        raise NodeConfigMalformed(f"the file is no YAML text: {' '.join(str(error).split())}") from None
    except (ValueError, OverflowError):
        # PyYAML reads the number of a directive or an escape without asking whether there is such a one.
        raise NodeConfigMalformed(
            "the file holds a number in a directive or an escape that is none of YAML's"
        ) from None
    except RecursionError:
        raise NodeConfigMalformed("the file is nested too deeply") from None


def _problem(location: tuple[int | str, ...], details: Mapping[str, Any]) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).lstrip(".")
    kind = details["type"]
    if kind == "extra_forbidden":
        *_, key = location
        outer = place[: -len(str(key))].rstrip(".")
        return f"{outer or 'the file'} has an unknown key {quote(str(key))}"
    if kind == "missing":
        return f"{place} is missing"
    if kind == "value_error":
        sentence = str(details["ctx"]["error"])
        return f"{place}: {sentence}" if place else sentence
    sentence = {
        "string_type": "must be a text",
        "tuple_type": "must be a list",
        "int_type": "must be a duration such as 24h",
        "model_type": "must be a mapping of keys to values",
        "model_attributes_type": "must be a mapping of keys to values",
        "too_short": "must not be empty",
        "string_unicode": "has a key that holds half of a surrogate pair, which is no character",
    }.get(kind, str(details["msg"]))
    return f"{place or 'the file'} {sentence}"
