"""Objects of SDKs as plain values, and back.

The engine calls `plain` for a message that is not made of dicts, lists and scalars alone, and `rebuilt` for the changed
form of such a message. Nothing here imports an SDK: a model is known by what it can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Return a value made of dicts, lists and scalars alone, spelled as its SDK would send it."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a value of type {type(value).__name__} is neither plain nor a model of an SDK")
    module = type(value).__module__
    if module.startswith("langchain"):
        raise TypeError(f"{type(value).__name__} is LangChain's: use the middleware of trimtab.langchain")
    if module.startswith("google."):
        # Its models set every field; what is None was not said.
        return dump(mode="json", by_alias=True, exclude_none=True)
    hidden = getattr(value, "__api_exclude__", None)
    return dump(mode="json", by_alias=True, exclude_unset=True, exclude=hidden, warnings=False)


def rebuilt(original: Any, changed: Any) -> Any:
    """Return `changed` as an object of the kind of `original`, with every part that did not change as the very same object."""
    if _is_same(original, changed):
        return original
    if hasattr(original, "model_dump") and isinstance(changed, dict):
        kind = type(original)
        try:
            return kind.model_validate(changed)
        except ValueError:
            return kind.model_construct(**changed)
    if isinstance(original, Mapping) and isinstance(changed, dict):
        return {key: rebuilt(original[key], item) if key in original else item for key, item in changed.items()}
    if isinstance(original, (list, tuple)) and isinstance(changed, list):
        return _rebuilt_list(list(original), changed)
    return changed


def _is_same(original: Any, changed: Any) -> bool:
    return type(plain(original)) is type(changed) and plain(original) == changed


def _rebuilt_list(originals: list[Any], changed: list[Any]) -> list[Any]:
    """Pair elements in order: an equal one is kept, a changed one follows the next original of its type."""
    result = []
    at = 0
    for item in changed:
        rest = range(at, len(originals))
        equal = next((place for place in rest if _is_same(originals[place], item)), None)
        alike = next((place for place in rest if _type(plain(originals[place])) == _type(item)), None)
        place = alike if equal is None else equal
        if place is None:
            result.append(item)
        else:
            result.append(rebuilt(originals[place], item))
            at = place + 1
    return result


def _type(value: Any) -> Any:
    return value.get("type", dict) if isinstance(value, dict) else type(value)
