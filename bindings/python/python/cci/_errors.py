"""The exceptions of the package: one class for each kind of status."""


class Error(Exception):
    """What the library refuses, or what has failed. Its text says what is wrong, and what to do.

    ``status`` is the number of the C library's ``cci_status_t``.
    """

    status: int = 1


class Disconnected(Error, ConnectionError):
    """The connection is closed, or its peer is gone."""


class TimedOut(Error, TimeoutError):
    """The time was over before it happened."""


class Refused(Error, ConnectionRefusedError):
    """The peer rejected the connection, or nobody listens there."""


class TooLong(Error, ValueError):
    """The message is longer than the connection, or its receiver, allows."""


class NoBuffers(Error):
    """The program holds every buffer: drop messages and views, or open with more."""


class BadHandle(Error, ValueError):
    """The peer's memory is not there any more, or lacks the right, or is too short."""


class Invalid(Error, ValueError):
    """An argument is not valid, or the object cannot be used any more."""


class Unsupported(Error, NotImplementedError):
    """The transport does not offer that."""


_CLASSES: dict[int, type[Error]] = {
    2: Disconnected,
    3: TimedOut,
    5: BadHandle,
    7: Unsupported,
    22: Invalid,
    34: Invalid,
    90: TooLong,
    105: NoBuffers,
    110: TimedOut,
    111: Refused,
}


def of_status(status: int, sentence: str) -> Error:
    """The exception for a status of the library."""
    error = _CLASSES.get(status, Error)(sentence)
    error.status = status
    return error


def timed_out(what: str, timeout: float, remedy: str = "") -> Error:
    """The exception of a wait that the program has limited."""
    return of_status(110, f"{what} within {timeout:g} s" + (remedy and f"; {remedy}"))
