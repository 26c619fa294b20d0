"""Registration of the schemas that a job writes, before the first row is written.

It also finds mistakes that only a registry's answer shows: a wrong login, a subject that refuses such a schema.
"""

from __future__ import annotations

from service.formats.avro.derive import NoAvroType
from service.formats.avro.part import check_writable, register
from service.formats.avro.schema import AvroSchemaError
from service.formats.json.registered import register_json
from service.formats.protobuf.part import check_message_writable, register_message
from service.formats.protobuf.schemas.schema import ProtobufSchemaError
from service.formats.record_parts import key_part, value_part
from service.kafka.errors import KafkaConfigError, KafkaUnreachable
from service.plan.formats import Family, traits
from service.plan.program import Program
from service.plan.table import Table
from service.schema_registry.errors import RegistryConfigError, RegistryUnreachable


def agree_on_schemas(program: Program) -> None:
    """Register the schemas of all outputs, waiting for registries that do not answer. Raises KafkaConfigError with
    every mistake, KafkaUnreachable if a registry stays silent."""
    troubles: list[str] = []
    for output in program.outputs:
        try:
            _agree(output.table)
        except RegistryUnreachable as error:
            raise KafkaUnreachable(f"table {output.table.name}: {error}") from error
        except (RegistryConfigError, AvroSchemaError, NoAvroType, ProtobufSchemaError) as error:
            troubles.append(f"table {output.table.name}: {error}")
    if troubles:
        raise KafkaConfigError("\n".join(troubles))


def _agree(table: Table) -> None:
    connector = table.connector
    for form, part in ((connector.key_format, key_part(table)), (connector.value_format, value_part(table))):
        if form is None or not part.columns:
            continue
        known = traits(form)
        if known.family is Family.JSON and known.with_registry:
            register_json(part, form)
        if known.family is Family.PROTOBUF:
            check_message_writable(part, form)
            if "url" in form.registry:
                register_message(part, form)
        if known.family is not Family.AVRO:
            continue
        enveloped = known.carries_changes
        check_writable(part, form, enveloped=enveloped)
        if "url" in form.registry:
            register(part, form, enveloped=enveloped)
