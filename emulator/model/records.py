"""Records of arrays that the native functions of the model update."""

from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from ..language.types import SCALARS

Record = TypeVar("Record")


def zeroed(record: type[Record], **fields: Any) -> Record:
    """Return a record of arrays. fields: by name, the size of a zeroed array of the field's type, or the value."""
    types = get_type_hints(record)

    def value(name: str, field: Any) -> Any:
        return np.zeros(field, SCALARS[str(get_args(types[name])[0])].dtype) if isinstance(field, int) else field

    return record(**{name: value(name, field) for name, field in fields.items()})
