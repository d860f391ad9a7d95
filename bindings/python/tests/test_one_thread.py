"""Both ends in one thread: a call that waits serves the thread's other endpoints meanwhile."""

import os
import threading
import time

import pytest

import cci

# No call that works takes as long; one that hangs ends.
LIMIT = 20


def test_a_server_and_its_client_live_in_one_thread(address):
    with cci.sync.listen(address) as server:
        with cci.sync.connect(server.uri, timeout=LIMIT) as client:
            peer = server.accept(timeout=LIMIT)
            for size in (0, 8, 1000, 3_000_000):
                client.send(bytes(size), timeout=LIMIT)
                assert len(peer.recv(timeout=LIMIT)) == size
                peer.send(bytes(size), timeout=LIMIT)
                assert len(client.recv(timeout=LIMIT)) == size
            with peer.register(bytearray(b"x" * 4096)) as there, client.register(bytearray(4096)) as here:
                client.read(here, there.handle, timeout=LIMIT)
                client.write(here, there.handle, timeout=LIMIT)
                client.fetch_add(there.handle, 1, timeout=LIMIT)
        with pytest.raises(cci.Disconnected):
            peer.recv(timeout=LIMIT)


def test_a_call_without_a_limit_does_not_hang(program, address):
    one = program(
        """
        import cci, sys
        with cci.sync.listen(sys.argv[1] or None) as server:
            client = cci.sync.connect(server.uri)
            peer = server.accept()
            client.send(b"hello")
            print(bytes(peer.recv()).decode())
        """,
        address or "",
    )
    assert one.end() == "hello\n"


def test_servers_of_one_thread_connect_to_each_other(address):
    with cci.sync.listen(address) as one, cci.sync.listen(address) as two:
        there = one.connect(two.uri, timeout=LIMIT)
        back = two.connect(one.uri, timeout=LIMIT)
        ends = two.accept(timeout=LIMIT), one.accept(timeout=LIMIT)
        for end in (there, back):
            end.send(b"x", timeout=LIMIT)
        assert [bytes(end.recv(timeout=LIMIT)) for end in ends] == [b"x", b"x"]


def test_a_wait_for_nothing_sleeps_and_ends_in_time():
    with cci.sync.listen() as server, cci.sync.connect(server.uri, timeout=LIMIT) as client:
        peer = server.accept(timeout=LIMIT)
        before = time.thread_time()
        with pytest.raises(cci.TimedOut):
            client.recv(timeout=0.5)
        assert time.thread_time() - before < 0.25
        peer.close()


def test_a_wait_serves_again_when_the_thread_that_waited_for_the_server_has_stopped():
    with cci.sync.listen() as server, cci.sync.connect(server.uri, timeout=LIMIT) as client:
        peer = server.accept(timeout=LIMIT)

        def wait():
            for _ in range(20):
                with pytest.raises(cci.TimedOut):
                    server.accept(timeout=0.02)

        waiting = threading.Thread(target=wait)
        waiting.start()
        is_over = False
        while not is_over:
            is_over = not waiting.is_alive()
            client.send(bytes(200_000), timeout=LIMIT)
            assert len(peer.recv(timeout=LIMIT)) == 200_000
        waiting.join()


def test_endpoints_that_are_closed_or_dropped_are_forgotten():
    for _ in range(20):
        with cci.sync.listen("sm") as server:
            client = cci.sync.connect(server.uri, timeout=LIMIT)
            peer = server.accept(timeout=LIMIT)
        with pytest.raises(cci.Disconnected):
            client.recv(timeout=LIMIT)
        del client, peer


def test_a_forked_child_serves_what_it_has_opened_itself():
    with cci.sync.listen("sm") as server, cci.sync.connect(server.uri, timeout=LIMIT):
        peer = server.accept(timeout=LIMIT)
        child = os.fork()
        if child == 0:
            try:
                with cci.sync.listen("sm") as own, cci.sync.connect(own.uri, timeout=LIMIT) as client:
                    peer = own.accept(timeout=LIMIT)
                    client.send(b"x", timeout=LIMIT)
                    os._exit(0 if peer.recv(timeout=LIMIT) == b"x" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        peer.close()
