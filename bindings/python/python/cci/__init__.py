"""The Common Communication Interface: messages and remote memory access between processes.

A server, and a client of it, in an event loop (asyncio, uvloop or trio)::

    async with cci.listen() as server:
        print(server.uri)
        async for connection in server:
            async for message in connection:
                await connection.send(message)

    async with cci.connect(uri) as connection:
        await connection.send(b"hello")
        print(bytes(await connection.recv()))

``cci.sync`` has the same names without ``await``. ``Endpoint`` is CCI itself: events, and a
descriptor for any event loop. ``docs/python.md`` of the project explains more.
"""

from ._cci import (
    Device,
    Endpoint,
    Event,
    Job,
    Message,
    RawConnection,
    Registration,
    __version__,
    devices,
    job,
)
from ._errors import (
    BadHandle,
    Disconnected,
    Error,
    Invalid,
    NoBuffers,
    Refused,
    TimedOut,
    TooLong,
    Unsupported,
)

RO = "RO"
RU = "RU"
UU = "UU"

__all__ = [
    "RO",
    "RU",
    "UU",
    "BadHandle",
    "Connection",
    "Device",
    "Disconnected",
    "Endpoint",
    "Error",
    "Event",
    "Invalid",
    "Job",
    "Message",
    "NoBuffers",
    "RawConnection",
    "Refused",
    "Registration",
    "Server",
    "TimedOut",
    "TooLong",
    "Unsupported",
    "__version__",
    "connect",
    "devices",
    "job",
    "listen",
    "sync",
]


def __getattr__(name):
    # What needs an event loop, and the synchronous twin, are imported when they are used first.
    if name in ("Connection", "Server", "connect", "listen"):
        from . import _aio

        value = getattr(_aio, name)
    elif name == "sync":
        from importlib import import_module

        value = import_module(".sync", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(__all__) | set(globals()))
