"""Results against the types that their classes declare."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Union, get_args, get_origin

from tandem.record import Named, Record, _kinds_of, _without_none


def mismatches(record: Any, kind: Optional[Any] = None, path: str = "") -> Iterator[str]:
    """What in a result is not of the type that its class declares."""
    kind = type(record) if kind is None else kind
    optional = get_origin(kind) is Union
    kind = _without_none(kind)
    origin = get_origin(kind)
    if kind is Any or (optional and record is None):
        return
    if origin is list:
        if not isinstance(record, list):
            yield f"{path} is {record!r}, expected a list"
        else:
            for item in record:
                yield from mismatches(item, get_args(kind)[0], path + "[]")
    elif origin is Named:
        for name in record:
            yield from mismatches(record[name], get_args(kind)[0], f"{path}.{name}")
    elif isinstance(kind, type) and issubclass(kind, Record):
        if not isinstance(record, kind):
            yield f"{path} is {record!r}, expected {kind.__name__}"
            return
        for key, wanted in _kinds_of(kind).items():
            if key in record or get_origin(wanted) is not Union:
                yield from mismatches(record.get(key), wanted, f"{path}.{key}" if path else key)
        for key in record:
            if key not in _kinds_of(kind):
                yield f"{path}.{key} is not declared"
    elif origin is not None:
        if not isinstance(record, Mapping):
            yield f"{path} is {record!r}, expected an object"
    elif not (isinstance(record, (int, float)) and not isinstance(record, bool) if kind is float else type(record) is kind):
        yield f"{path} is {record!r}, expected {kind.__name__}"
