"""CCI itself: endpoints, events, the descriptor."""

import select
import threading

import pytest

import cci

LIMIT = 60


def both(address=None):
    return cci.Endpoint(address), cci.Endpoint(address)


def until(kind, *endpoints):
    """Sleeps by the descriptors until an event of this kind, and answers requests meanwhile."""
    poll = select.poll()
    for endpoint in endpoints:
        poll.register(endpoint.fileno(), select.POLLIN)
    while True:
        for endpoint in endpoints:
            while (event := endpoint.get_event()) is not None:
                if event.kind == kind:
                    return event
                if event.kind == "request":
                    event.accept(11)
                elif event.error is not None:
                    raise event.error
        assert poll.poll(LIMIT * 1000), "nothing comes"


def test_a_message_and_its_end_are_events(address):
    server, client = both(address)
    with server, client:
        client.connect(server.uri, context=7, payload=b"who I am", timeout=LIMIT)
        request = until("request", server, client)
        assert (request.payload, request.attribute, request.connection) == (b"who I am", "RO", None)
        request.accept(11)
        with pytest.raises(cci.Invalid, match="accepted or rejected already"):
            request.accept()
        connected = until("connect", client, server)
        connection = connected.connection
        assert (connected.context, connection.context, connection.attribute) == (7, 7, "RO")
        assert connected.error is None and connection.max_send_size > 1000
        client.send(connection, b"hello", context=5)
        event = until("recv", server, client)
        assert event.message == b"hello" and event.connection.context == 11
        end = until("send", client, server)
        assert (end.context, end.error, end.connection) == (5, None, connection)
        assert hash(end.connection) == hash(connection) and end.connection != event.connection
        client.disconnect(connection)
        gone = until("disconnect", server)
        assert gone.connection == event.connection
        assert connection.max_send_size is None and connection.attribute is None


def test_a_rejected_connect_and_a_dropped_request_fail_at_the_client():
    server, client = both("sm")
    with server, client:
        for answer in (lambda request: request.reject(), lambda request: None):
            client.connect(server.uri, context=3, timeout=LIMIT)
            request = until("request", server, client)
            answer(request)
            del request
            failed = None
            while failed is None or failed.kind != "connect":
                server.get_event()
                failed = client.get_event()
            assert failed.context == 3 and isinstance(failed.error, cci.Refused)
            with pytest.raises(ConnectionRefusedError, match="the program at sm://.* rejected the request"):
                raise failed.error
        with pytest.raises(cci.Invalid, match="not a connection request"):
            failed.accept()


def test_a_wait_gets_what_another_thread_causes():
    server, client = both()
    with server, client:
        got = []
        waiting = threading.Thread(target=lambda: got.append(server.wait(LIMIT)))
        waiting.start()
        client.connect(server.uri)
        while waiting.is_alive():
            client.get_event()
            waiting.join(0.001)
        assert got[0].kind == "request"


def test_a_wait_ends_after_its_time_and_when_the_endpoint_closes():
    endpoint = cci.Endpoint()
    assert endpoint.wait(0) is None and endpoint.wait(0.01) is None
    ended = []

    def wait():
        with pytest.raises(cci.Invalid, match="this endpoint has been closed"):
            endpoint.wait()
        ended.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    endpoint.close()
    waiting.join(LIMIT)
    assert ended == [True] and endpoint.closed
    for call in (endpoint.get_event, endpoint.fileno, lambda: endpoint.connect("sm://1/1")):
        with pytest.raises(cci.Invalid, match="this endpoint has been closed"):
            call()
    endpoint.close()


def test_remote_memory_is_written_read_and_added_to():
    server, client = both("sm")
    with server, client:
        client.connect(server.uri)
        connection = until("connect", client, server).connection
        target = bytearray(64)
        with server.register(target) as remote, client.register(bytearray(b"x" * 64)) as local:
            client.write(connection, local, remote.handle, length=32, offset=32, context=1)
            assert until("send", client, server).context == 1
            assert target == bytes(32) + b"x" * 32
            client.fetch_add(connection, local, remote.handle, 9, context=2)
            assert until("send", client, server).error is None
            assert target[0] == 9
            client.read(connection, local, remote.handle, context=3)
            assert until("send", client, server).context == 3
            # Beyond the peer's memory: an event tells so.
            client.write(connection, local, remote.handle, offset=1, context=4)
            assert isinstance(until("send", client, server).error, cci.BadHandle)
            with pytest.raises(ValueError, match="local_offset 60 and length 5 lie outside of the 64"):
                client.write(connection, local, remote.handle, local_offset=60, length=5)


def test_a_message_beyond_the_maximum_is_refused():
    server, client = both("sm")
    with server, client:
        client.connect(server.uri)
        connection = until("connect", client, server).connection
        with pytest.raises(cci.TooLong, match="longer than the connection's maximum send size"):
            client.send(connection, bytes(connection.max_send_size + 1))


def test_an_endpoint_listens_at_a_port():
    with cci.Endpoint("sock://:0") as endpoint:
        assert endpoint.uri.startswith("sock://")
    with cci.Endpoint("sm", recv_buffers=16) as endpoint:
        assert endpoint.recv_buffers == 16 and endpoint.uri.startswith("sm://")


def test_devices_are_listed_with_the_reason():
    devices = cci.devices()
    assert sum(device.is_default for device in devices) == 1
    assert all(device.reason and device.name and device.transport for device in devices)
    assert any(device.up and device.max_send_size > 0 for device in devices)
    assert "sm0" in repr(devices) and cci.devices()[0].up
