"""What the awaited and the synchronous connections and servers have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ._cci import Hub, Job, checked_uri
from ._errors import of_status

if TYPE_CHECKING:
    from ._cci import Registration

# What a call gives that waits for the end of an operation: nothing, or a word; or what is awaited
# for it.
Done = TypeVar("Done")
Word = TypeVar("Word")


class Peer(Generic[Done, Word]):
    """One connection of a hub, by its number."""

    def __init__(self, hub: Hub, peer: int) -> None:
        self._hub = hub
        self._peer = peer

    def _done(self, begin: Callable[[], int], timeout: float | None, what: str) -> Done:
        """Begins an operation when there is room, and waits for its end; ``what`` failed if not."""
        raise NotImplementedError

    def _word(self, begin: Callable[[], int], timeout: float | None, what: str) -> Word:
        """The same of an operation that gives a word."""
        raise NotImplementedError

    @property
    def max_send_size(self) -> int:
        """The longest message that is copied and buffered, bytes; longer ones are sent as well."""
        return self._about()[0]

    @property
    def attribute(self) -> str:
        """What the connection promises: RO, RU or UU."""
        return self._about()[1]

    def _about(self) -> tuple[int, str]:
        about = self._hub.about(self._peer)
        if about is None:
            raise of_status(2, "the connection is closed, or its peer is gone")
        return about

    def register(self, memory: Any, *, read: bool = True, write: bool = True) -> Registration:
        """Registers memory of an object, for RMA of this side, and of peers with these rights."""
        return self._hub.register(memory, read, write)

    def write(
        self,
        local: Registration,
        remote: bytes,
        *,
        offset: int = 0,
        local_offset: int = 0,
        length: int | None = None,
        timeout: float | None = None,
    ) -> Done:
        """Writes from ``local`` into the peer's memory that ``remote`` names, at ``offset``.

        Returns when the bytes are there. Without ``length`` all that follow ``local_offset``.
        """
        hub, peer = self._hub, self._peer
        return self._done(
            lambda: hub.rma(peer, True, local, remote, offset, local_offset, length),
            timeout,
            "the memory was not written",
        )

    def read(
        self,
        local: Registration,
        remote: bytes,
        *,
        offset: int = 0,
        local_offset: int = 0,
        length: int | None = None,
        timeout: float | None = None,
    ) -> Done:
        """Reads the peer's memory that ``remote`` names, from ``offset`` on, into ``local``."""
        hub, peer = self._hub, self._peer
        return self._done(
            lambda: hub.rma(peer, False, local, remote, offset, local_offset, length),
            timeout,
            "the memory was not read",
        )

    def fetch_add(
        self, remote: bytes, value: int, *, offset: int = 0, timeout: float | None = None
    ) -> Word:
        """Adds to an aligned word of 8 bytes of the peer, once, and returns its old value."""
        hub, peer = self._hub, self._peer
        return self._word(
            lambda: hub.fetch_add(peer, remote, value, offset), timeout, "the word was not changed"
        )

    def compare_swap(
        self,
        remote: bytes,
        expected: int,
        desired: int,
        *,
        offset: int = 0,
        timeout: float | None = None,
    ) -> Word:
        """Replaces an aligned word of 8 bytes that is ``expected``, and returns its old value."""
        hub, peer = self._hub, self._peer
        return self._word(
            lambda: hub.compare_swap(peer, remote, expected, desired, offset),
            timeout,
            "the word was not changed",
        )

    def close(self) -> None:
        """Closes the connection. Messages that were not received are gone."""
        self._hub.disconnect(self._peer)

    def __del__(self) -> None:
        self._hub.disconnect(self._peer)


class Listener:
    """A hub that others connect to."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @property
    def uri(self) -> str:
        """What clients connect to. Programs pass it on and never take it apart."""
        return self._hub.uri

    def register(self, memory: Any, *, read: bool = True, write: bool = True) -> Registration:
        """Registers memory of an object for the peers of this endpoint, with these rights."""
        return self._hub.register(memory, read, write)

    def close(self) -> None:
        """Closes the endpoint and all its connections. Waits for what was sent, at most 100 ms."""
        self._hub.close()


def hub_at(address: str | Job | None, **options: Any) -> Hub:
    """A hub that others connect to: at an address, or of a job."""
    if isinstance(address, Job):
        return Hub(None, of_job=address, **options)
    return Hub(address, **options)


def way_of(uri: str, options: dict[str, Any]) -> tuple[str, str]:
    """What the clients have in common that share an endpoint: how their URIs begin, and their options."""
    # As text, because what a program gives by mistake may have no hash.
    return checked_uri(uri).partition("://")[0], repr(options)
