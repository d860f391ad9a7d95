"""The event loops that the package runs in: asyncio (uvloop too) and trio."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from fcntl import F_DUPFD_CLOEXEC, fcntl
from types import coroutine
from typing import Any, Protocol
from weakref import ref


def _copy_of(descriptor: int) -> int:
    """Never standard input, output or error, which the program may have closed."""
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 3)


class Watcher(Protocol):
    """What a loop calls when a descriptor is readable."""

    def on_readable(self) -> None: ...


class Waiter(Protocol):
    """A wait of one task."""

    def set(self) -> None:
        """Ends the wait that is under way, or the next one."""

    def clear(self) -> None:
        """Takes that back."""

    async def wait(self, timeout: float | None) -> None: ...


class Unknown:
    """In the place of a loop that does not tell which thread runs it."""

    _thread_id = None


class Asyncio:
    """An event loop of asyncio."""

    def __init__(self) -> None:
        import asyncio

        self.home = asyncio.get_running_loop()
        self.running: Callable[[], object] = asyncio._get_running_loop
        # asyncio's own loop has the thread that runs it. Until Python 3.12 that is quicker to
        # compare than the running loop, for which Python makes a system call.
        self.runner: Any = self.home if hasattr(self.home, "_thread_id") else Unknown
        # What asyncio's own loop runs next; others do not tell.
        self.ready: Any = getattr(self.home, "_ready", None)
        self._readable: Any = None
        self._watched: int | None = None

    def watch(self, descriptor: int, watcher: Watcher) -> None:
        """Has ``on_readable`` called when the descriptor is readable; of a copy, which is ours."""
        self._watched = _copy_of(descriptor)
        weak = ref(watcher)

        def readable() -> None:
            alive = weak()
            if alive is not None:
                alive.on_readable()

        self._readable = readable
        self.home.add_reader(self._watched, readable)

    def unwatch(self) -> None:
        """Ends that, from any thread, also when the loop is closed."""
        watched, self._watched = self._watched, None
        if watched is None:
            return
        loop = self.home

        def end() -> None:
            if not loop.is_closed():
                loop.remove_reader(watched)
            os.close(watched)

        if loop.is_closed() or self.running() is loop or not loop.is_running():
            end()
        else:
            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:
                end()

    async def checkpoint(self) -> None:
        """Gives other tasks their turn."""
        await _turn()

    def is_idle(self) -> bool:
        """Whether no other task is ready to run, as far as the loop tells."""
        ready = self.ready
        if not ready:
            return ready is not None
        # The descriptor of this endpoint is no other task.
        return len(ready) == 1 and getattr(ready[0], "_callback", None) is self._readable

    def is_here(self) -> bool:
        return self.running() is self.home

    def is_closed(self) -> bool:
        return self.home.is_closed()

    def waiter(self) -> Waiter:
        return _AsyncioWaiter(self.home)


@coroutine
def _turn() -> Generator[None, None, None]:
    yield


class _AsyncioWaiter:
    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._future = loop.create_future()

    def set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def clear(self) -> None:
        if self._future.done():
            self._future = self._loop.create_future()

    async def wait(self, timeout: float | None) -> None:
        timer = None if timeout is None else self._loop.call_later(timeout, self.set)
        try:
            await self._future
        finally:
            if timer is not None:
                timer.cancel()


class Trio:
    """A run of trio."""

    def __init__(self) -> None:
        import trio

        self._trio: Any = trio
        self.home = trio.lowlevel.current_trio_token()
        self.running: Callable[[], object] = _trio_token
        # It tells neither its thread nor what it runs next.
        self.runner: Any = Unknown
        self.ready: Any = None
        self._scope: Any = None

    def watch(self, descriptor: int, watcher: Watcher) -> None:
        watched = _copy_of(descriptor)
        weak = ref(watcher)
        trio = self._trio
        scope = self._scope = trio.CancelScope()

        async def readable() -> None:
            try:
                with scope:
                    while weak() is not None:
                        await trio.lowlevel.wait_readable(watched)
                        alive = weak()
                        if alive is not None:
                            alive.on_readable()
                        del alive
                        # What is readable at once must not keep other tasks from their turn.
                        await trio.lowlevel.checkpoint()
            finally:
                os.close(watched)

        trio.lowlevel.spawn_system_task(readable, name="cci")

    def unwatch(self) -> None:
        scope, self._scope = self._scope, None
        if scope is None:
            return
        if self.is_here():
            scope.cancel()
            return
        try:
            self.home.run_sync_soon(scope.cancel)
        except self._trio.RunFinishedError:
            pass

    async def checkpoint(self) -> None:
        await self._trio.lowlevel.checkpoint()

    def is_idle(self) -> bool:
        return False

    def is_here(self) -> bool:
        return self.running() is self.home

    def is_closed(self) -> bool:
        try:
            self.home.run_sync_soon(lambda: None)
        except self._trio.RunFinishedError:
            return True
        return False

    def waiter(self) -> Waiter:
        return _TrioWaiter(self._trio)


class _TrioWaiter:
    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._event = trio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        if self._event.is_set():
            self._event = self._trio.Event()

    async def wait(self, timeout: float | None) -> None:
        if timeout is None:
            await self._event.wait()
            return
        with self._trio.move_on_after(timeout):
            await self._event.wait()


def _trio_token() -> Any:
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def current() -> Asyncio | Trio:
    """The event loop that runs this code."""
    if _trio_token() is not None:
        return Trio()
    try:
        return Asyncio()
    except RuntimeError:
        raise RuntimeError(
            "cci.listen() and cci.connect() work in an event loop (asyncio or trio); call them in a "
            "coroutine, or use cci.sync"
        ) from None
