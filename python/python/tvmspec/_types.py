"""Types of arguments and results."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any, Union

#: The path of a file.
Path = Union[str, "os.PathLike[str]"]

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

    #: An array of numpy.
    Array = np.ndarray[Any, Any]

    #: A path, or bytes in any object with the buffer protocol.
    Source = Union[Path, Buffer, Array]
else:
    # numpy is optional, and the type of buffers has no name before Python 3.12.
    Array = Any
    Source = Union[str, os.PathLike, bytes, bytearray, memoryview, mmap.mmap]
