"""JSON objects whose keys are attributes."""

from __future__ import annotations

import difflib
import functools
import keyword
from typing import TYPE_CHECKING, Any, Dict, Generic, Iterator, Mapping, Type, TypeVar, Union, get_args, get_origin
from typing import get_type_hints

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")


@functools.lru_cache(maxsize=None)
def _kinds_of(record: Type[Record]) -> Dict[str, Any]:
    """The declared type of each key."""
    return {_key_of(name): kind for name, kind in get_type_hints(record).items() if not name.startswith("_")}


def _key_of(attribute: str) -> str:
    """`class_` stands for the key `class`, which Python keeps for itself."""
    return attribute[:-1] if keyword.iskeyword(attribute[:-1]) and attribute.endswith("_") else attribute


def _without_none(kind: Any) -> Any:
    if get_origin(kind) is Union:
        return next(part for part in get_args(kind) if part is not type(None))
    return kind


def _as_declared(kind: Any, value: Any) -> Any:
    """The JSON `value` as a value of type `kind`: objects become records."""
    kind = _without_none(kind)
    origin = get_origin(kind)
    if isinstance(value, Mapping):
        if origin is Named:
            return Named(value, get_args(kind)[0])
        return kind(value) if isinstance(kind, type) and issubclass(kind, Record) else value
    if isinstance(value, list) and origin is list:
        return [_as_declared(get_args(kind)[0], item) for item in value]
    return value


class _Object(Mapping[str, Any]):
    """What records and named values have in common: a JSON object, read only."""

    __slots__ = ("_values", "_made")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._made: Dict[str, Any] = {}

    def _kind_of(self, key: str) -> Any:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        if key not in self._made:
            self._made[key] = _as_declared(self._kind_of(key), self._values[key])
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={_brief(value)}" for key, value in self._values.items())
        return f"{type(self).__name__}({shown})"

    def to_dict(self) -> Dict[str, Any]:
        """The JSON object, as Tandem wrote it."""
        return dict(self._values)

    def flat(self) -> Dict[str, Any]:
        """Keys with points instead of objects within objects: `time_s.exposed.tp`. Lists are left out."""
        return dict(_flattened(self._values, ""))


class Record(_Object):
    """A JSON object with the keys that the class declares, each an attribute.

    A declared key that the object leaves out is None. Keys that a later version of Tandem adds are attributes, too.
    """

    __slots__ = ()

    def _kind_of(self, key: str) -> Any:
        return _kinds_of(type(self)).get(key, Any)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            key = _key_of(name)
            if key in self._values:
                return self[key]
            kinds = _kinds_of(type(self))
            if key in kinds:
                return None
            near = difflib.get_close_matches(key, {*kinds, *self._values}, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(f"{type(self).__name__} has no key {key}{hint}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_kinds_of(type(self)), *self._values})

    def frame(self) -> pandas.DataFrame:
        """One row, whose columns are the keys of `flat()`."""
        return data_frame([self.flat()])


class Named(_Object, Generic[T]):
    """Values of one type by name, such as seconds by axis: `exposed.tp`, `exposed["tp"]`."""

    __slots__ = ("_kind",)

    def __init__(self, values: Mapping[str, T], kind: Any = Any) -> None:
        super().__init__(values)
        self._kind = kind

    def _kind_of(self, key: str) -> Any:
        return self._kind

    def __getattr__(self, name: str) -> T:
        if name in type(self).__slots__ or name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no {name} here")
        value: T = self[name]
        return value


def data_frame(rows: list[Dict[str, Any]]) -> pandas.DataFrame:
    """The rows as a DataFrame. Raises ImportError where pandas is missing."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("a frame needs pandas: pip install pandas, or apt install python3-pandas") from error
    return pandas.DataFrame(rows)


def _flattened(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{key}.")
        elif not isinstance(value, list):
            yield prefix + key, value


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{...}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)} items]" if value else "[]"
    return repr(value)
