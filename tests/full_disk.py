"""A disk that is full, without one."""

import resource
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def file_size_limit(size: int) -> Generator[None]:
    """No file of this process grows over `size` bytes: writing fails as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
