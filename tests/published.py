"""The published schemas of JSON documents."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS = Path(__file__).parents[1] / "docs" / "reference" / "schemas"


@cache
def validators() -> dict[str, Draft202012Validator]:
    """Return what checks documents, by the names of their schemas."""
    schemas = [json.loads(path.read_bytes()) for path in SCHEMAS.glob("*.json")]
    known = [(each["$id"], Resource.from_contents(each)) for each in schemas]
    registry: Registry[Any] = Registry().with_resources(known)
    return {each["title"]: Draft202012Validator(each, registry=registry) for each in schemas}


def published(text: str | bytes) -> Any:
    """Return the document of a text after a check that it is as its published schema says."""
    document = json.loads(text)
    validators()[document["schema"]].validate(document)
    return document
