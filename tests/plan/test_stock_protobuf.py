"""The contract and its JSON against the stock protobuf implementation, compiled from schemas/plan.proto."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message as StockMessage
from hypothesis import given
from hypothesis import strategies as st
from plan_strategies import plans, records

from pqcota_provision.plan import model
from pqcota_provision.plan.model import FIELDS, WireEnum
from pqcota_provision.plan.protojson import dump_message, load_message
from pqcota_provision.plan.timestamp import Timestamp

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
PACKAGE = "pqcota.provisioning.v1"
ENUMS = (
    model.PlanStatus,
    model.DeployAutomationLevel,
    model.RemediationKind,
    model.CryptoRuntime,
    model.ProvisioningStatus,
)
MESSAGES = tuple(FIELDS)

Stock = Callable[[type], type[StockMessage]]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> descriptor_pool.DescriptorPool:
    """The descriptors of schemas/plan.proto as protoc compiles it, with no other schema around."""
    out = tmp_path_factory.mktemp("protoc") / "plan.desc"
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{SCHEMAS}", "--include_imports"),
            *(f"--descriptor_set_out={out}", "plan.proto"),
        ],
        check=True,
    )
    files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    compiled = descriptor_pool.DescriptorPool()
    for file in files.file:
        compiled.Add(file)  # type: ignore[no-untyped-call,unused-ignore]
    return compiled


@pytest.fixture(scope="module")
def stock(pool: descriptor_pool.DescriptorPool) -> Stock:
    """What gives the stock class of a message of the model."""

    def stock_class(message: type) -> type[StockMessage]:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{message.__name__}"))

    return stock_class


def to_stock(message: object, stock_class: type[StockMessage]) -> StockMessage:
    """Build the stock message field by field, without any JSON."""
    result = stock_class()
    _fill(result, message)
    return result


def _fill(target: Any, message: object) -> None:
    if isinstance(message, Timestamp):
        target.seconds, target.nanos = message.seconds, message.nanos
        return
    for field in FIELDS[type(message)]:
        value = getattr(message, field.name)
        if value is None:
            continue
        nested = field.kind in FIELDS or field.kind is Timestamp
        if field.repeated and nested:
            for item in value:
                _fill(getattr(target, field.name).add(), item)
        elif field.repeated:
            getattr(target, field.name).extend(value)
        elif nested:
            getattr(target, field.name).SetInParent()
            _fill(getattr(target, field.name), value)
        else:
            setattr(target, field.name, value)


messages = st.one_of(plans, records)


@given(message=messages)
def test_what_we_write_the_stock_implementation_reads_equal(stock: Stock, message: object) -> None:
    stock_class = stock(type(message))
    read = json_format.Parse(dump_message(message), stock_class())
    assert read == to_stock(message, stock_class)


@given(message=messages)
def test_what_we_write_on_one_line_the_stock_implementation_reads_equal(stock: Stock, message: object) -> None:
    text = dump_message(message, indent=None)
    assert "\n" not in text
    stock_class = stock(type(message))
    assert json_format.Parse(text, stock_class()) == to_stock(message, stock_class)


@given(
    message=messages,
    snake_case=st.booleans(),
    enum_numbers=st.booleans(),
    ensure_ascii=st.booleans(),
    zeros=st.booleans(),
)
def test_what_the_stock_implementation_writes_we_read_equal(
    stock: Stock, message: object, *, snake_case: bool, enum_numbers: bool, ensure_ascii: bool, zeros: bool
) -> None:
    text = json_format.MessageToJson(
        to_stock(message, stock(type(message))),
        preserving_proto_field_name=snake_case,
        use_integers_for_enums=enum_numbers,
        ensure_ascii=ensure_ascii,
        always_print_fields_with_no_presence=zeros,
    )
    assert load_message(type(message), text) == message


@given(message=messages)
def test_what_we_write_we_read_equal(message: object) -> None:
    assert load_message(type(message), dump_message(message)) == message


@given(message=messages)
def test_we_write_the_very_fields_the_stock_implementation_writes(stock: Stock, message: object) -> None:
    theirs = json_format.MessageToJson(
        to_stock(message, stock(type(message))), indent=2, ensure_ascii=False, sort_keys=False
    )
    assert dump_message(message) == theirs + "\n"


def test_the_table_of_fields_holds_every_message_of_the_schema(pool: descriptor_pool.DescriptorPool) -> None:
    file = pool.FindFileByName("plan.proto")
    assert file.package == PACKAGE
    assert set(file.message_types_by_name) == {message.__name__ for message in MESSAGES}
    assert set(file.enum_types_by_name) == {enum.__name__ for enum in ENUMS}


@pytest.mark.parametrize("message", MESSAGES)
def test_the_table_of_fields_equals_the_schema(pool: descriptor_pool.DescriptorPool, message: type) -> None:
    descriptor = pool.FindMessageTypeByName(f"{PACKAGE}.{message.__name__}")
    ours = [
        (field.number, field.name, field.json_name, _type_name(field.kind), field.repeated, field.oneof)
        for field in FIELDS[message]
    ]
    assert ours == [
        (
            field.number,
            field.name,
            field.json_name,
            _stock_type_name(field),
            field.is_repeated,
            field.containing_oneof.name if field.containing_oneof else "",
        )
        for field in _by_number(descriptor)
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_model_has_the_attributes_of_the_table(message: type) -> None:
    assert tuple(message.__dataclass_fields__) == tuple(  # type: ignore[attr-defined]
        field.name for field in FIELDS[message]
    )


@pytest.mark.parametrize("enum", ENUMS)
def test_the_enums_equal_the_schema(pool: descriptor_pool.DescriptorPool, enum: type[WireEnum]) -> None:
    descriptor = pool.FindEnumTypeByName(f"{PACKAGE}.{enum.__name__}")
    assert {value.wire_name: int(value) for value in enum} == {value.name: value.number for value in descriptor.values}


def _by_number(descriptor: Descriptor) -> list[FieldDescriptor]:
    return sorted(descriptor.fields, key=lambda field: field.number)


def _type_name(kind: type) -> str:
    if kind in (str, int):
        return {str: "string", int: "int32"}[kind]
    return "google.protobuf.Timestamp" if kind is Timestamp else f"{PACKAGE}.{kind.__name__}"


def _stock_type_name(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return field.message_type.full_name
    if field.enum_type is not None:
        return field.enum_type.full_name
    return {FieldDescriptor.TYPE_STRING: "string", FieldDescriptor.TYPE_INT32: "int32"}[field.type]
