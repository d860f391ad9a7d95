"""The names of ``cci`` without ``await``: calls that wait look for 50 us, then sleep.

They release the interpreter while they wait, any thread may call them, and Ctrl-C ends them::

    with cci.sync.listen() as server:
        for connection in server:
            for message in connection:
                connection.send(message)

    with cci.sync.connect(uri) as connection:
        connection.send(b"hello")
        print(bytes(connection.recv()))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ._cci import Hub, seconds
from ._errors import Disconnected, Error, timed_out
from ._peers import Listener, Peer, hub_at, way_of

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

    from ._cci import Job, Message

__all__ = ["Connection", "Server", "connect", "listen"]


# Seconds for which a post waits for room: two programs that post to each other and receive nothing
# would wait for ever.
_POST_LIMIT = 30.0
# What is to be done then.
_RECEIVE = "receive what the peer has sent, or give post() a longer timeout"


class _Shared:
    """A hub that several connections use; it is closed with the last of them."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    def __del__(self) -> None:
        self.hub.close()


class Connection(Peer[None, int]):
    """A connection. ``connect`` and servers make it.

    ``with`` closes it at the end of the block. ``for`` receives messages until the peer disconnects.
    """

    def __init__(self, shared: _Shared, peer: int) -> None:
        super().__init__(shared.hub, peer)
        self._shared = shared

    def send(self, data: Buffer, *, timeout: float | None = None) -> None:
        """Sends a message of any size, and returns when it is delivered."""
        if not self._hub.send_wait(self._peer, data, timeout):
            assert timeout is not None
            raise timed_out("the message was not delivered", timeout)

    def post(self, data: Buffer, *, timeout: float | None = _POST_LIMIT) -> None:
        """Sends a message, and returns when there is room for it. A later call raises a failure.

        Without room it waits, at most 30 s unless another ``timeout`` is given; None: without end.
        """
        if not self._hub.post_wait(self._peer, data, timeout):
            assert timeout is not None
            raise timed_out("no room for the message came", timeout, _RECEIVE)

    def recv(self, *, timeout: float | None = None) -> Message:
        """Returns the next message. It holds a receive buffer until it and its views are gone.

        Raises ``Disconnected`` once the peer is gone and all messages are received; ``TimedOut``.
        """
        message = self._hub.recv(self._peer, timeout)
        if message is None:
            assert timeout is not None
            raise timed_out("no message came", timeout)
        return message

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        try:
            return self.recv()
        except Disconnected:
            raise StopIteration from None

    def _word(self, begin: Callable[[], int], timeout: float | None, what: str) -> int:
        timeout = seconds("timeout", timeout)
        start = monotonic()
        operation = begin() or self._hub.wait_begin(begin, timeout)
        if operation == 0:
            raise timed_out(what, timeout or 0.0)
        left = None if timeout is None else max(0.0, timeout - (monotonic() - start))
        try:
            done = self._hub.wait_end(operation, left)
        except BaseException:
            self._hub.forget(operation)
            raise
        if done is None:
            self._hub.forget(operation)
            raise timed_out(what, timeout or 0.0)
        return done

    def _done(self, begin: Callable[[], int], timeout: float | None, what: str) -> None:
        self._word(begin, timeout, what)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class Server(Listener):
    """An endpoint that others connect to. ``listen`` makes it.

    ``for`` gives the connections of its clients. ``with`` closes it at the end of the block, with
    all its connections.
    """

    def __init__(self, shared: _Shared) -> None:
        super().__init__(shared.hub)
        self._shared = shared

    def accept(self, *, timeout: float | None = None) -> Connection:
        """Returns the connection of the next client."""
        peer = self._shared.hub.accept(timeout)
        if peer is None:
            assert timeout is not None
            raise timed_out("no client came", timeout)
        return Connection(self._shared, peer)

    def connect(
        self,
        uri: str,
        attribute: str = "RO",
        *,
        payload: bytes = b"",
        timeout: float | None = None,
    ) -> Connection:
        """Connects to another endpoint from this one: for peers of one job, as ``job:1``."""
        return _connected(self._shared, uri, attribute, payload, timeout)

    def __iter__(self) -> Iterator[Connection]:
        return self

    def __next__(self) -> Connection:
        try:
            return self.accept()
        except Error:
            if self._shared.hub.closed:
                raise StopIteration from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def listen(
    address: str | Job | None = None,
    *,
    recv_buffers: int | None = None,
    send_buffers: int | None = None,
    max_message: int = 1 << 30,
    keepalive: float | None = None,
    send_timeout: float | None = None,
    spin: float | None = None,
) -> Server:
    """Opens an endpoint that others connect to. The options are those of ``cci.listen``.

    spin: seconds for which a wait looks before it sleeps; 50 us unless given.
    """
    hub = hub_at(
        address,
        recv_buffers=recv_buffers,
        send_buffers=send_buffers,
        max_message=max_message,
        keepalive=keepalive,
        send_timeout=send_timeout,
        spin=spin,
        waits=True,
    )
    return Server(_Shared(hub))


# One endpoint for all connections of this process that lead out by one device with the same
# options. It is closed with the last of them.
_clients: WeakValueDictionary[tuple[Any, ...], _Shared] = WeakValueDictionary()


def _connected(
    shared: _Shared, uri: str, attribute: str, payload: bytes, timeout: float | None
) -> Connection:
    peer = shared.hub.connect(uri, attribute, payload, timeout)
    try:
        shared.hub.wait_end(peer, None)
    except BaseException:
        shared.hub.forget(peer)
        shared.hub.disconnect(peer)
        raise
    return Connection(shared, peer)


def connect(
    uri: str,
    attribute: str = "RO",
    *,
    payload: bytes = b"",
    timeout: float | None = None,
    recv_buffers: int | None = None,
    send_buffers: int | None = None,
    max_message: int = 1 << 30,
    keepalive: float | None = None,
    send_timeout: float | None = None,
    spin: float | None = None,
) -> Connection:
    """Connects to the endpoint at ``uri``. The options are those of ``cci.connect``."""
    options: dict[str, Any] = {
        "recv_buffers": recv_buffers,
        "send_buffers": send_buffers,
        "max_message": max_message,
        "keepalive": keepalive,
        "send_timeout": send_timeout,
        "spin": spin,
    }
    # An endpoint of the parent is of no use to a forked child.
    key = (os.getpid(), *way_of(uri, options))
    shared = _clients.get(key)
    if shared is None or shared.hub.closed:
        shared = _Shared(Hub(uri=uri, waits=True, **options))
        _clients[key] = shared
    return _connected(shared, uri, attribute, payload, timeout)
