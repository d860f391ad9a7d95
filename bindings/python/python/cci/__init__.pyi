from . import sync as sync
from ._aio import Connection as Connection
from ._aio import Server as Server
from ._aio import connect as connect
from ._aio import listen as listen
from ._cci import Device as Device
from ._cci import Endpoint as Endpoint
from ._cci import Event as Event
from ._cci import Job as Job
from ._cci import Message as Message
from ._cci import RawConnection as RawConnection
from ._cci import Registration as Registration
from ._cci import __version__ as __version__
from ._cci import devices as devices
from ._cci import job as job
from ._errors import BadHandle as BadHandle
from ._errors import Disconnected as Disconnected
from ._errors import Error as Error
from ._errors import Invalid as Invalid
from ._errors import NoBuffers as NoBuffers
from ._errors import Refused as Refused
from ._errors import TimedOut as TimedOut
from ._errors import TooLong as TooLong
from ._errors import Unsupported as Unsupported

RO: str
RU: str
UU: str

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

def __dir__() -> list[str]: ...
