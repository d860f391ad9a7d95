"""Bad input: each call names the argument, its value and the remedy."""

import asyncio

import pytest

import cci


@pytest.fixture(scope="module")
def ends():
    with cci.Endpoint("sm") as endpoint:
        yield endpoint


OPENING = [
    ({"recv_buffers": 0}, ValueError, "recv_buffers is 0; give a number from 1"),
    ({"recv_buffers": -1}, ValueError, "recv_buffers is -1; give a number"),
    ({"recv_buffers": "many"}, TypeError, "recv_buffers"),
    ({"recv_buffers": 1 << 21}, cci.Error, "recv_buffers is 2097152, and an endpoint has at most"),
    ({"send_buffers": 1 << 40}, ValueError, "send_buffers is 1099511627776; give a number"),
    ({"max_message": -5}, ValueError, "max_message is -5; give 0 or more bytes"),
    ({"keepalive": -1.0}, ValueError, "keepalive is -1; give seconds from 0 on, or None"),
    ({"keepalive": float("nan")}, ValueError, "keepalive is NaN; give seconds"),
    ({"keepalive": "soon"}, TypeError, "keepalive"),
    ({"keepalive": 1e6}, cci.Invalid, "out of range"),
    ({"send_timeout": -0.5}, ValueError, "send_timeout is -0.5; give seconds"),
    ({"address": "carrier-pigeon"}, cci.Error, "no device or transport is named carrier-pigeon; give one of"),
    ({"address": "sm://here"}, cci.Error, "here"),
    ({"address": 5000}, TypeError, 'address is the number 5000; give a port as ":5000", or as "TRANSPORT://:5000"'),
    ({"address": ("", 5000)}, TypeError, 'address is a tuple; give a port as ":5000" or'),
    ({"address": b":5000"}, TypeError, 'address is a bytes; give a port as ":5000" or'),
    ({"address": "5000"}, cci.Error, "no device or transport is named 5000; .* or a port as :5000"),
    ({"address": "nowhere.invalid:5000"}, cci.Error, "the host name 'nowhere.invalid' of the service cannot be resolved"),
]


@pytest.mark.parametrize("options, kind, sentence", OPENING, ids=lambda value: str(value))
@pytest.mark.parametrize("opener", [cci.Endpoint, cci.sync.listen, cci.listen])
def test_opening_refuses(opener, options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        opener(**options)


def test_an_address_may_name_a_host_of_its_own():
    with cci.sync.listen("localhost:0") as server:
        assert ":0" not in server.uri and "127.0.0.1:" in server.uri, server.uri


URIS = [
    (5000, TypeError, "uri is a int; give the string that the server has as its uri"),
    (None, TypeError, "uri is a NoneType; give the string"),
    (b"sm://1/1", TypeError, "uri is a bytes; give the string"),
    ("localhost:5000", cci.Invalid, "URI"),
    (":5000", cci.Invalid, "URI"),
]


@pytest.mark.parametrize("uri, kind, sentence", URIS, ids=lambda value: str(value))
def test_connecting_refuses(ends, uri, kind, sentence):
    with cci.sync.listen("sm") as server:
        for connect in (ends.connect, server.connect, cci.sync.connect):
            with pytest.raises(kind, match=sentence):
                connect(uri)

    async def main():
        async with cci.listen("sm") as server:
            for connect in (server.connect, cci.connect):
                with pytest.raises(kind, match=sentence):
                    await connect(uri)

    asyncio.run(main())


def test_options_without_a_hash_are_named():
    with pytest.raises(TypeError) as raised:
        cci.sync.connect("sm://1/1", recv_buffers=[])
    assert "recv_buffers" in str(raised.value) + str(raised.value.__notes__)


CALLS = [
    (lambda end: end.connect("nowhere"), cci.Invalid, "URI"),
    (lambda end: end.connect(7), TypeError, "uri"),
    (lambda end: end.connect("sm://1/1", attribute="XX"), ValueError, 'attribute is "XX"; give one of RO'),
    (lambda end: end.connect("sm://1/1", payload="text"), TypeError, "payload"),
    (lambda end: end.connect("sm://1/1", payload=bytes(1025)), cci.Invalid, "at most 1,024 bytes"),
    (lambda end: end.connect("sm://1/1", timeout=-1), ValueError, "timeout is -1; give seconds"),
    (lambda end: end.connect("job:0"), cci.Error, "names a rank"),
    (lambda end: end.wait(-1), ValueError, "timeout is -1; give seconds"),
    (lambda end: end.wait("long"), TypeError, "timeout"),
    (lambda end: end.send(None, b""), TypeError, "connection"),
    (lambda end: end.register("text"), TypeError, "memory is a str, which has no memory to show; give bytes"),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls_refuse(ends, number):
    call, kind, sentence = CALLS[number]
    with pytest.raises(kind, match=sentence):
        call(ends)


@pytest.fixture(scope="module")
def connection():
    """A connection of an endpoint to itself."""
    with cci.sync.listen("sm") as server:
        connection = server.connect(server.uri, timeout=60)
        accepted = server.accept(timeout=60)
        yield connection
        accepted.close()
        connection.close()


USES = [
    (lambda c, m: c.send("text"), TypeError, "data is a str, which has no memory to show; give bytes"),
    (lambda c, m: c.post(None), TypeError, "data is a NoneType"),
    (lambda c, m: c.send(b"", timeout=-1), ValueError, "timeout is -1; give seconds"),
    (lambda c, m: c.recv(timeout="1"), TypeError, "timeout"),
    (lambda c, m: c.write(m, bytes(31)), ValueError, "remote has 31 bytes; give the 32 bytes of a peer's"),
    (lambda c, m: c.write(m, bytes(32), offset=-1), ValueError, "offset is -1; give 0 or more bytes"),
    (lambda c, m: c.write(m, bytes(32), local_offset=5, length=4), ValueError, "local_offset 5 and length 4 lie"),
    (lambda c, m: c.read(m, bytes(32), length=-1), ValueError, "length is -1"),
    (lambda c, m: c.write(m, bytes(32), length=0), cci.Invalid, "an RMA moves at least one byte"),
    (lambda c, m: c.write(b"", bytes(32)), TypeError, "local"),
    (lambda c, m: c.write(m, bytes(32), timeout=60), cci.BadHandle, "unknown, stale, out of range"),
    (lambda c, m: c.fetch_add(bytes(32), -1), OverflowError, "negative"),
    (lambda c, m: c.compare_swap(bytes(3), 0, 1), ValueError, "remote has 3 bytes"),
]


@pytest.mark.parametrize("number", range(len(USES)))
def test_connections_refuse(connection, number):
    use, kind, sentence = USES[number]
    with connection.register(bytearray(8)) as memory, pytest.raises(kind, match=sentence):
        use(connection, memory)
    # Nothing of it has broken the connection.
    connection.send(b"x", timeout=60)


def test_errors_have_their_status_and_are_errors_of_python():
    with pytest.raises(cci.Error) as raised:
        cci.Endpoint(address="sm", recv_buffers=1 << 21)
    assert raised.value.status == 22 and isinstance(raised.value, ValueError)
    kinds = {
        cci.Disconnected: ConnectionError,
        cci.TimedOut: TimeoutError,
        cci.Refused: ConnectionRefusedError,
        cci.TooLong: ValueError,
        cci.BadHandle: ValueError,
        cci.Unsupported: NotImplementedError,
    }
    for ours, theirs in kinds.items():
        assert issubclass(ours, cci.Error) and issubclass(ours, theirs)


def test_without_a_job_the_sentence_names_the_launchers():
    with pytest.raises(cci.Error, match="cci run"):
        cci.job()
