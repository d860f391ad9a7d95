"""Messages as buffers, and registered memory."""

import array
import gc
import importlib.util
import mmap
import threading
import weakref

import pytest

import cci

LIMIT = 60
# Longer than fits into an entry of shared memory, so that it lies in a slot.
PAYLOAD = bytes(range(200)) * 10


@pytest.fixture(params=["sm", "sock", "tcp"])
def pair(request):
    with cci.sync.listen(request.param) as server:
        ends = []
        accepting = threading.Thread(target=lambda: ends.append(server.accept(timeout=LIMIT)))
        accepting.start()
        with cci.sync.connect(server.uri, timeout=LIMIT) as client:
            accepting.join()
            yield ends[0], client


def received(pair, data=PAYLOAD):
    here, there = pair
    there.post(data)
    return here.recv(timeout=LIMIT)


def test_a_message_is_a_read_only_buffer(pair):
    message = received(pair)
    view = memoryview(message)
    assert (len(message), view.nbytes, view.readonly, view.contiguous) == (2000, 2000, True, True)
    assert view[100:200].tobytes() == PAYLOAD[100:200] and bytes(message) == PAYLOAD
    assert message == PAYLOAD and message != b"another" and message != 7 and message == view
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(TypeError):
        hash(message)
    assert repr(message) == "<cci.Message of 2000 bytes>"


def test_an_empty_message_has_an_empty_view(pair):
    message = received(pair, b"")
    assert (len(message), bytes(message), memoryview(message).tobytes()) == (0, b"", b"")


def test_a_view_outlives_its_message_its_connection_and_its_endpoint():
    server = cci.sync.listen()
    accepted = []
    thread = threading.Thread(target=lambda: accepted.append(server.accept(timeout=LIMIT)))
    thread.start()
    client = cci.sync.connect(server.uri, timeout=LIMIT)
    thread.join()
    views = []
    for size in (10, 2000, 3_000_000):
        sent = bytes(index % 249 for index in range(size))
        receiving = threading.Thread(target=lambda: views.append(memoryview(accepted[0].recv(timeout=LIMIT))))
        receiving.start()
        client.send(sent, timeout=LIMIT)
        receiving.join()
    accepted.pop().close()
    client.close()
    server.close()
    del server, client
    gc.collect()
    for view in views:
        assert view.tobytes() == bytes(index % 249 for index in range(len(view)))


def events(*endpoints):
    """Polls until there is an event, and returns it with its endpoint."""
    while True:
        for endpoint in endpoints:
            event = endpoint.get_event()
            if event is not None:
                return endpoint, event


@pytest.fixture
def connected():
    """Two endpoints of CCI with few buffers, and the connection of the first."""
    with cci.Endpoint("sm") as client, cci.Endpoint("sm", recv_buffers=8) as server:
        client.connect(server.uri)
        connection = None
        accepted = False
        while connection is None or not accepted:
            _, event = events(client, server)
            if event.kind == "request":
                event.accept()
            accepted |= event.kind == "accept"
            connection = event.connection if event.kind == "connect" else connection
            del event
        yield client, server, connection


def take(server, client):
    event = None
    while event is None or event.kind != "recv":
        client.get_event()
        event = server.get_event()
    return event.message


def test_a_buffer_returns_when_the_message_and_all_views_are_gone_on_any_thread(connected):
    client, server, connection = connected
    client.send(connection, PAYLOAD, silent=True)
    message = take(server, client)
    assert server.held == 1
    view = memoryview(message)
    part = view[10:20]
    del message
    gc.collect()
    assert server.held == 1, "views hold the buffer"
    del view
    assert server.held == 1, "a part of a view holds it too"
    holder = [part]
    del part
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    assert server.held == 0


def test_half_of_the_buffers_held_is_warned_of_once_and_no_message_is_lost(connected):
    client, server, connection = connected
    kept = []
    for number in range(3):
        client.send(connection, bytes([number]), silent=True)
        kept.append(take(server, client))
    client.send(connection, bytes([3]), silent=True)
    with pytest.raises(ResourceWarning, match="4 of 8 receive buffers are held by messages; drop messages"):
        take(server, client)
    kept.append(take(server, client))
    client.send(connection, bytes([4]), silent=True)
    kept.append(take(server, client))
    assert [bytes(message)[0] for message in kept] == [0, 1, 2, 3, 4] and server.held == 5


def test_a_receive_that_holds_every_buffer_is_told_so():
    with cci.sync.listen(recv_buffers=4) as server:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(server.accept(timeout=LIMIT)))
        thread.start()
        with cci.sync.connect(server.uri, timeout=LIMIT) as client:
            thread.join()
            for number in range(6):
                client.post(bytes([number]))
            kept = [accepted[0].recv(timeout=LIMIT)]
            with pytest.warns(ResourceWarning, match="2 of 4 receive buffers"):
                kept.append(accepted[0].recv(timeout=LIMIT))
            kept += [accepted[0].recv(timeout=LIMIT) for _ in range(2)]
            with pytest.raises(cci.NoBuffers, match="holds every receive buffer"):
                accepted[0].recv(timeout=LIMIT)
            kept.pop(0)
            kept.append(answered(client, accepted[0]))
            assert [bytes(message)[0] for message in kept] == [1, 2, 3, 4]


def answered(client, connection):
    """Receives while the sender makes progress too."""
    for _ in range(100):
        with pytest.raises(cci.TimedOut):
            client.recv(timeout=0)
        try:
            return connection.recv(timeout=0.1)
        except cci.TimedOut:
            pass
    pytest.fail("no message came")


def numpy_array():
    numpy = pytest.importorskip("numpy")
    return numpy.zeros(512, dtype="f8")


class Tensor:
    """What has DLPack, and no buffer protocol."""

    def __init__(self, shown, device=(1, 0)):
        self.shown = shown
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.shown.__dlpack__(**options)


MEMORIES = {
    "bytearray": lambda: bytearray(4096),
    "array": lambda: array.array("d", bytes(4096)),
    "mmap": lambda: mmap.mmap(-1, 4096),
    "numpy": numpy_array,
    "dlpack": lambda: Tensor(numpy_array()),
}


def shown(memory):
    return bytes(memory.shown.tobytes() if isinstance(memory, Tensor) else memory)


@pytest.mark.parametrize("kind", MEMORIES)
def test_memory_of_each_kind_is_written_and_read(pair, kind):
    here, there = pair
    target, source = MEMORIES[kind](), bytearray(bytes(range(256)) * 16)
    serving = Serving(here)
    with here.register(target) as remote, there.register(source) as local:
        assert (len(remote), len(remote.handle)) == (4096, 32)
        there.write(local, remote.handle, timeout=LIMIT)
        assert shown(target) == bytes(source)
        there.write(local, remote.handle, offset=8, local_offset=100, length=50, timeout=LIMIT)
        assert shown(target)[8:58] == bytes(source[100:150])
        back = bytearray(300)
        with there.register(back, read=False, write=False) as into:
            there.read(into, remote.handle, offset=8, length=50, local_offset=10, timeout=LIMIT)
        assert back[10:60] == source[100:150] and back[:10] == bytes(10)
    serving.end()


class Serving:
    """Makes progress for the target of an RMA, which `sock` and `tcp` need now and then."""

    def __init__(self, connection):
        self.is_over = False
        self.thread = threading.Thread(target=self.serve, args=[connection])
        self.thread.start()

    def serve(self, connection):
        while not self.is_over:
            try:
                connection.recv(timeout=0.01)
            except cci.TimedOut:
                pass

    def end(self):
        self.is_over = True
        self.thread.join()


def test_words_are_changed_once(pair):
    here, there = pair
    words = array.array("Q", [5, 7])
    serving = Serving(here)
    with here.register(words) as remote:
        assert there.fetch_add(remote.handle, 3, timeout=LIMIT) == 5
        assert there.compare_swap(remote.handle, 7, 2**63, offset=8, timeout=LIMIT) == 7
        assert there.compare_swap(remote.handle, 7, 1, offset=8, timeout=LIMIT) == 2**63
    serving.end()
    assert list(words) == [8, 2**63]


def test_registered_memory_is_neither_resized_nor_freed(pair):
    here, _ = pair

    class Counted(bytearray):
        pass

    memory = Counted(100)
    alive = weakref.ref(memory)
    registration = here.register(memory)
    with pytest.raises(BufferError):
        memory.append(1)
    del memory
    gc.collect()
    assert alive() is not None
    registration.close()
    gc.collect()
    assert alive() is None and registration.closed
    registration.close()


def test_an_ended_registration_is_refused_to_peers(pair):
    here, there = pair
    serving = Serving(here)
    registration = here.register(bytearray(64))
    registration.close()
    with there.register(bytearray(64)) as local:
        with pytest.raises(cci.BadHandle, match="unknown, stale, out of range, or lacks the right"):
            there.write(local, registration.handle, timeout=LIMIT)
        # The connection lives on.
        with here.register(bytearray(64)) as another:
            there.write(local, another.handle, timeout=LIMIT)
    serving.end()


def test_rights_are_those_that_were_given(pair):
    here, there = pair
    serving = Serving(here)
    with here.register(b"constant", write=False) as fixed, there.register(bytearray(8)) as local:
        there.read(local, fixed.handle, timeout=LIMIT)
        with pytest.raises(cci.BadHandle):
            there.write(local, fixed.handle, timeout=LIMIT)
    serving.end()


def test_memory_of_a_registration_dropped_after_its_endpoint_is_freed():
    class Counted(bytearray):
        pass

    memory = Counted(100)
    alive = weakref.ref(memory)
    server = cci.Endpoint()
    registration = server.register(memory)
    server.close()
    del memory, registration
    gc.collect()
    assert alive() is None


def test_memory_that_cannot_be_registered_is_named(pair):
    here, _ = pair
    with pytest.raises(BufferError, match="memory: .*not writable"):
        here.register(b"constant")
    with pytest.raises(TypeError, match="memory is a list, which has no memory to show"):
        here.register([1, 2])
    with pytest.raises(cci.Invalid, match="length 0"):
        here.register(bytearray())
    with pytest.raises(ValueError, match="memory lies on device 2 of DLPack"):
        here.register(Tensor(None, device=(2, 0)))
    with here.register(b"constant", write=False) as fixed:
        with pytest.raises(ValueError, match="local is read-only memory; register a bytearray"):
            here.read(fixed, bytes(32))


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="numpy is not installed")
def test_strided_arrays_are_refused(pair):
    import numpy

    here, there = pair
    strided = numpy.zeros((8, 8))[:, ::2]
    with pytest.raises((BufferError, ValueError), match="memory"):
        here.register(strided)
    with pytest.raises(ValueError, match="memory is not contiguous; copy it first"):
        here.register(Tensor(strided))
    with pytest.raises((BufferError, ValueError), match="data"):
        there.send(strided)
