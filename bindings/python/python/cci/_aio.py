"""Connections whose calls are awaited: ``cci.listen`` and ``cci.connect``."""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from . import _loops
from ._cci import Hub, seconds
from ._errors import Disconnected, Error, of_status, timed_out
from ._peers import Listener, Peer, hub_at, way_of

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

    from ._cci import Job, Message

T = TypeVar("T")

# The key of waits for accepted connections, as `Hub.progress` gives it. Waits for room for a
# connection have its number below zero: any progress may give it.
_ACCEPTED = 0
# After as many waits that were over at once other tasks get their turn.
_TURNS = 64


def _nowhere() -> None:
    return None


class _Reactor:
    """One hub in one event loop: wakes the tasks that wait for what has happened."""

    def __init__(self, hub: Hub, spin: float) -> None:
        self._loop: _loops.Asyncio | _loops.Trio | None = None
        # The loop that runs here, and the one that this belongs to: no loop before it is attached.
        self.running: Callable[[], object] = _nowhere
        self.home: object = _nowhere
        self.runner: Any = _loops.Unknown
        self.hub = hub
        # Seconds for which a wait looks; none where a loop does not tell which tasks are ready.
        self.spin = spin
        self.ready: Any = None
        # Waits in a row that were over at once.
        self.turns = 0
        self.failure: Error | None = None
        # The waits for each key, in the order in which they are served. Only the first one looks.
        self.lines: dict[int, deque[_loops.Waiter]] = {}
        # The keys of waits for room, in the order in which their first waits came.
        self._rooms: dict[int, None] = {}

    def attach(self) -> None:
        """Belongs to the running event loop from now on. Refuses another one."""
        if self._loop is None:
            loop = _loops.current()
            loop.watch(self.hub.fileno(), self)
            self._loop = loop
            self.running, self.home = loop.running, loop.home
            self.runner, self.ready = loop.runner, loop.ready
            if self.ready is None:
                self.spin = 0.0
            # The descriptor tells of what comes after a look.
            self.on_readable()
        elif not self._loop.is_here():
            state = "is closed" if self._loop.is_closed() else "is another one"
            raise RuntimeError(
                f"the event loop of this connection {state}; connect again in the loop that uses it"
            )

    def on_readable(self) -> None:
        try:
            keys = self.hub.progress()
        except Error as failure:
            # Closed, or a forked child: whoever waits finds that out by itself.
            self.failure = failure
            self._detach()
            self.wake_all(list(self.lines))
            return
        self.wake_all(keys)

    def wake(self, key: int) -> None:
        """Wakes the first wait for this key. When that ends, it wakes the next one."""
        line = self.lines.get(key)
        if line:
            line[0].set()

    def wake_all(self, keys: list[int]) -> None:
        """Wakes the waits for these keys, and those for room."""
        # First those for room: a task that sends without pause would take it before them.
        for key in self._rooms:
            self.wake(key)
        for key in keys:
            self.wake(key)

    def _detach(self) -> None:
        if self._loop is not None:
            self._loop.unwatch()

    def close(self) -> None:
        self._detach()
        self.hub.close()
        self.wake_all(list(self.lines))

    def __del__(self) -> None:
        self._detach()
        self.hub.close()

    async def checkpoint(self) -> None:
        """Gives other tasks their turn."""
        self.turns = 0
        assert self._loop is not None
        await self._loop.checkpoint()

    def is_idle(self) -> bool:
        """Whether no other task is ready to run."""
        return self._loop is not None and self._loop.is_idle()

    async def wait(
        self, key: int, attempt: Callable[[], T | None], timeout: float | None = None
    ) -> T | None:
        """Repeats ``attempt`` until it gives something; None: the time is over.

        What an attempt gives is returned without a further suspension, so that no cancellation
        takes it away.
        """
        if self.running() is not self.home:
            self.attach()
        assert self._loop is not None
        self.turns += 1
        if self.turns >= _TURNS:
            await self.checkpoint()
        # Whoever waits already comes first.
        if key not in self.lines:
            done = attempt()
            if done is not None:
                return done
        if timeout is None:
            return await self._queue(key, attempt, None)
        return await self._queue(key, attempt, monotonic() + timeout)

    async def _queue(
        self, key: int, attempt: Callable[[], T | None], end: float | None
    ) -> T | None:
        """Waits until those that came before are served, and then for something."""
        assert self._loop is not None
        line = self.lines.setdefault(key, deque())
        waiter = self._loop.waiter()
        line.append(waiter)
        if key < 0:
            self._rooms.setdefault(key)
        try:
            while True:
                # Before the attempt: what comes after it must not be missed.
                waiter.clear()
                if line[0] is waiter:
                    done = attempt()
                    if done is not None:
                        return done
                    if self.failure is not None:
                        raise self.failure
                left = None if end is None else end - monotonic()
                if left is not None and left <= 0:
                    return None
                self.turns = 0
                await waiter.wait(left)
        finally:
            self._leave(key, line, waiter)

    def _leave(self, key: int, line: deque[_loops.Waiter], waiter: _loops.Waiter) -> None:
        """Ends a wait. The next one looks, for what this one has left or was woken for."""
        was_first = line[0] is waiter
        line.remove(waiter)
        if not line:
            del self.lines[key]
        elif was_first:
            line[0].set()
        if key < 0 and was_first:
            # Other connections come before the next of this one.
            del self._rooms[key]
            if line:
                self._rooms[key] = None

    async def end(
        self, peer: int, begin: Callable[[], int], timeout: float | None, what: str
    ) -> int:
        """Begins an operation of a connection when there is room, and waits for its end."""
        start = monotonic()
        left = timeout = seconds("timeout", timeout)
        operation = await self.wait(-peer, lambda: begin() or None, left)
        if operation is not None:
            try:
                if timeout is not None:
                    left = timeout - (monotonic() - start)
                done = await self.wait(operation, lambda: self.hub.ended(operation), left)
            except BaseException:
                self.hub.forget(operation)
                raise
            if done is not None:
                return done
            self.hub.forget(operation)
        assert timeout is not None
        raise timed_out(what, timeout)


class Connection(Peer[Coroutine[Any, Any, None], Coroutine[Any, Any, int]]):
    """A connection whose calls are awaited. ``connect`` and servers make it.

    ``async with`` closes it at the end of the block. ``async for`` receives messages until the peer
    disconnects. It belongs to the event loop that made it.
    """

    def __init__(self, reactor: _Reactor, peer: int) -> None:
        super().__init__(reactor.hub, peer)
        self._reactor = reactor

    async def _word(self, begin: Callable[[], int], timeout: float | None, what: str) -> int:
        return await self._reactor.end(self._peer, begin, timeout, what)

    async def _done(self, begin: Callable[[], int], timeout: float | None, what: str) -> None:
        await self._reactor.end(self._peer, begin, timeout, what)

    async def send(self, data: Buffer, *, timeout: float | None = None) -> None:
        """Sends a message of any size, and returns when it is delivered.

        Up to ``max_send_size`` the bytes are copied at once. Longer ones are not: the memory must
        not change before the call returns. A call that ends early (a timeout, a cancelled task)
        may have delivered the message.
        """
        hub, peer = self._hub, self._peer
        await self._reactor.end(
            peer, lambda: hub.send(peer, data), timeout, "the message was not delivered"
        )

    def post(self, data: Buffer) -> None:
        """Sends a message without waiting. A failure is raised by a later call.

        Raises ``NoBuffers`` where there is no room now; ``send`` waits for room.
        """
        reactor = self._reactor
        if reactor.runner._thread_id != get_ident() and reactor.running() is not reactor.home:
            reactor.attach()
        if not self._hub.post(self._peer, data):
            reactor.on_readable()
            if not self._hub.post(self._peer, data):
                raise of_status(105, "no free send buffer; await send() in place of post()")

    async def recv(self, *, timeout: float | None = None) -> Message:
        """Returns the next message. It holds a receive buffer until it and its views are gone.

        Raises ``Disconnected`` once the peer is gone and all messages are received; ``TimedOut``.
        """
        if timeout is not None:
            timeout = seconds("timeout", timeout)
        # Before a message is taken: a cancellation at a suspension after that would lose it.
        if self._reactor.turns >= _TURNS:
            await self._reactor.checkpoint()
        message = self._at_once()
        return await self._later(timeout) if message is None else message

    def _at_once(self) -> Message | None:
        """The next message, if it is here, or comes while the loop has nothing else to do."""
        reactor = self._reactor
        if reactor.runner._thread_id != get_ident() and reactor.running() is not reactor.home:
            reactor.attach()
        if self._peer in reactor.lines:
            # Whoever waits already comes first.
            return None
        spin = reactor.spin
        if spin > 0 and reactor.ready and not reactor.is_idle():
            spin = 0.0
        message = None
        try:
            message = self._hub.try_recv(self._peer, spin)
        finally:
            # Also where it raises: nothing else tells the others what this look has found for them.
            if message is None and spin > 0:
                reactor.wake_all(self._hub.changed())
        if message is not None:
            reactor.turns += 1
        return message

    async def _later(self, timeout: float | None) -> Message:
        hub, peer = self._hub, self._peer
        message = await self._reactor.wait(peer, lambda: hub.try_recv(peer), timeout)
        if message is None:
            assert timeout is not None
            raise timed_out("no message came", timeout)
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        if self._reactor.turns >= _TURNS:
            await self._reactor.checkpoint()
        try:
            message = self._at_once()
            return await self._later(None) if message is None else message
        except Disconnected:
            raise StopAsyncIteration from None

    def close(self) -> None:
        """Closes the connection. Messages that were not received are gone."""
        super().close()
        self._reactor.wake_all([self._peer])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.close()


class Server(Listener):
    """An endpoint that others connect to. ``listen`` makes it.

    ``async for`` gives the connections of its clients. ``async with`` closes it at the end of the
    block, with all its connections.
    """

    def __init__(self, reactor: _Reactor) -> None:
        super().__init__(reactor.hub)
        self._reactor = reactor

    async def accept(self, *, timeout: float | None = None) -> Connection:
        """Returns the connection of the next client."""
        reactor = self._reactor
        timeout = seconds("timeout", timeout)
        peer = await reactor.wait(_ACCEPTED, reactor.hub.try_accept, timeout)
        if peer is None:
            assert timeout is not None
            raise timed_out("no client came", timeout)
        return Connection(reactor, peer)

    async def connect(
        self,
        uri: str,
        attribute: str = "RO",
        *,
        payload: bytes = b"",
        timeout: float | None = None,
    ) -> Connection:
        """Connects to another endpoint from this one: for peers of one job, as ``job:1``."""
        return await _connected(self._reactor, uri, attribute, payload, timeout)

    def __aiter__(self) -> AsyncIterator[Connection]:
        return self

    async def __anext__(self) -> Connection:
        try:
            return await self.accept()
        except Error:
            if self._reactor.hub.closed:
                raise StopAsyncIteration from None
            raise

    def close(self) -> None:
        """Closes the endpoint and all its connections. Waits for what was sent, at most 100 ms."""
        self._reactor.close()

    async def __aenter__(self) -> Self:
        self._reactor.attach()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.close()


def _checked_spin(spin: float) -> float:
    """Seconds for which a wait looks; a loop that looks without end would do nothing else."""
    checked = seconds("spin", spin)
    if checked is None:
        raise ValueError(f"spin is {spin}; give seconds from 0 on, as 20e-6")
    return checked


def listen(
    address: str | Job | None = None,
    *,
    recv_buffers: int | None = None,
    send_buffers: int | None = None,
    max_message: int = 1 << 30,
    keepalive: float | None = None,
    send_timeout: float | None = None,
    spin: float = 0.0,
) -> Server:
    """Opens an endpoint that others connect to, for ``async with``.

    address: nothing for processes of this host, ``":5000"`` for the network, ``"sock://:5000"`` by
    one transport, or ``cci.job()``.
    recv_buffers, send_buffers: how many messages may wait to be received, and to be delivered.
    max_message: how many bytes of long messages peers may have under way here.
    keepalive: seconds of silence after which a peer counts as gone.
    send_timeout: seconds after which a message that is not delivered breaks its connection.
    spin: seconds for which a task that waits looks before it lets the loop sleep; only asyncio's own
    loop, and only while no other task is ready.
    """
    spin_time = _checked_spin(spin)
    hub = hub_at(
        address,
        recv_buffers=recv_buffers,
        send_buffers=send_buffers,
        max_message=max_message,
        keepalive=keepalive,
        send_timeout=send_timeout,
    )
    return Server(_Reactor(hub, spin_time))


class _Connecting:
    """What ``connect`` returns: to be awaited, or for ``async with``."""

    def __init__(self, begin: Callable[[], Awaitable[Connection]]) -> None:
        self._begin = begin
        self._made: Connection | None = None

    def __await__(self) -> Generator[Any, Any, Connection]:
        return self._begin().__await__()

    async def __aenter__(self) -> Connection:
        self._made = await self._begin()
        return self._made

    async def __aexit__(self, *_exception: object) -> None:
        if self._made is not None:
            self._made.close()


# One endpoint for all connections of a loop that lead out by one device with the same options. It
# is closed with the last of them.
_clients: WeakValueDictionary[tuple[Any, ...], _Reactor] = WeakValueDictionary()


def _client(uri: str, options: dict[str, Any], spin: float) -> _Reactor:
    loop = _loops.current()
    key = (loop.home, spin, *way_of(uri, options))
    reactor = _clients.get(key)
    if reactor is None or reactor.hub.closed or reactor.failure is not None:
        reactor = _Reactor(Hub(uri=uri, **options), spin)
        _clients[key] = reactor
    return reactor


async def _connected(
    reactor: _Reactor, uri: str, attribute: str, payload: bytes, timeout: float | None
) -> Connection:
    reactor.attach()
    peer = reactor.hub.connect(uri, attribute, payload, timeout)
    try:
        await reactor.wait(peer, lambda: reactor.hub.ended(peer))
    except BaseException:
        reactor.hub.forget(peer)
        reactor.hub.disconnect(peer)
        raise
    return Connection(reactor, peer)


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
    spin: float = 0.0,
) -> _Connecting:
    """Connects to the endpoint at ``uri``: ``await`` it, or ``async with cci.connect(uri) as c``.

    attribute: RO (reliable, ordered), RU (reliable, unordered) or UU (unreliable).
    payload: at most 1,024 bytes that the server's CCI program sees in the request.
    timeout: seconds that connecting may take. The other options are those of ``listen``.
    """
    options: dict[str, Any] = {
        "recv_buffers": recv_buffers,
        "send_buffers": send_buffers,
        "max_message": max_message,
        "keepalive": keepalive,
        "send_timeout": send_timeout,
    }

    spin_time = _checked_spin(spin)

    async def begin() -> Connection:
        return await _connected(_client(uri, options, spin_time), uri, attribute, payload, timeout)

    return _Connecting(begin)
