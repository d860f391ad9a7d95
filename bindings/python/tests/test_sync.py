"""The synchronous twin: threads, waits, Ctrl-C."""

import select
import signal
import sys
import threading
import time

import pytest

import cci

LIMIT = 60


@pytest.fixture
def pair(address):
    """A server and a client of one connection: the ends of both sides."""
    with cci.sync.listen(address) as server:
        ends = []
        accepting = threading.Thread(target=lambda: ends.append(server.accept(timeout=LIMIT)))
        accepting.start()
        with cci.sync.connect(server.uri, timeout=LIMIT) as client:
            accepting.join()
            yield ends[0], client


def test_messages_go_both_ways(pair):
    here, there = pair
    for size in (0, 1, 56, 57, 4000, there.max_send_size):
        sent = bytes(index % 253 for index in range(size))
        there.post(sent)
        received = here.recv(timeout=LIMIT)
        assert (len(received), bytes(received)) == (size, sent)
        here.post(received)
        assert there.recv(timeout=LIMIT) == sent


def test_send_returns_when_the_message_is_delivered(pair):
    here, there = pair
    got = []

    def take():
        for message in here:
            got.append(bytes(message))

    taking = threading.Thread(target=take)
    taking.start()
    for number in range(100):
        there.send(b"%d" % number, timeout=LIMIT)
    there.send(bytes(2_500_000), timeout=LIMIT)
    there.close()
    taking.join(LIMIT)
    assert got[:100] == [b"%d" % number for number in range(100)] and len(got[100]) == 2_500_000


def test_a_wait_ends_after_its_time(pair):
    here, there = pair
    with pytest.raises(cci.TimedOut, match="no message came within 0.02 s"):
        there.recv(timeout=0.02)
    with pytest.raises(TimeoutError):
        there.recv(timeout=0)
    here.post(b"later")
    assert there.recv(timeout=LIMIT) == b"later"


def test_a_message_comes_while_another_thread_runs(pair):
    """The interpreter is released: this thread could not send otherwise."""
    here, there = pair
    got = []
    waiting = threading.Thread(target=lambda: got.append(bytes(there.recv(timeout=LIMIT))))
    waiting.start()
    time.sleep(0)
    here.send(b"for the other thread", timeout=LIMIT)
    waiting.join(LIMIT)
    assert got == [b"for the other thread"]


def test_threads_wait_for_connections_of_one_endpoint():
    """The thread that takes an event wakes the thread that it is for."""
    with cci.sync.listen() as server:
        clients = 6

        def serve():
            for _ in range(clients):
                connection = server.accept(timeout=LIMIT)
                threading.Thread(target=answer, args=[connection]).start()

        def answer(connection):
            for message in connection:
                connection.post(bytes(message) + b"!")
            connection.close()

        failed = []

        def call(number):
            try:
                with cci.sync.connect(server.uri, timeout=LIMIT) as connection:
                    for turn in range(50):
                        connection.post(b"%d.%d" % (number, turn))
                        assert connection.recv(timeout=LIMIT) == b"%d.%d!" % (number, turn)
            except BaseException as why:
                failed.append(why)

        threads = [threading.Thread(target=serve)]
        threads += [threading.Thread(target=call, args=[n]) for n in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        assert failed == [] and not any(thread.is_alive() for thread in threads)


@pytest.fixture
def hasty_threads():
    """Threads take turns as often as the interpreter lets them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_threads_do_not_overtake_each_other(hasty_threads):
    """A thread that has taken an event and waits for the interpreter holds up later ones."""
    clients, messages = 3, 2000
    expected = list(range(messages))
    received, failed = [], []

    def serve(server):
        connection = server.accept(timeout=LIMIT)
        received.append([int(bytes(connection.recv(timeout=LIMIT))) for _ in expected])
        connection.send(b"end", timeout=LIMIT)

    def call(uri):
        with cci.sync.connect(uri, timeout=LIMIT) as connection:
            for number in expected:
                connection.post(b"%d" % number, timeout=LIMIT)
            assert connection.recv(timeout=LIMIT) == b"end"

    def run(task, argument):
        try:
            task(argument)
        except BaseException as why:
            failed.append(why)

    for _ in range(5):
        with cci.sync.listen() as server:
            threads = [threading.Thread(target=run, args=(serve, server)) for _ in range(clients)]
            threads += [threading.Thread(target=run, args=(call, server.uri)) for _ in range(clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(LIMIT)
            assert failed == [] and not any(thread.is_alive() for thread in threads)
    assert received == [expected] * (5 * clients)


def test_closing_ends_the_waits_of_other_threads():
    server = cci.sync.listen()
    ended = []

    def wait():
        ended.extend(server)
        ended.append("closed")

    def receive():
        with pytest.raises(cci.Disconnected, match="closed here"):
            peer.recv()
        ended.append("received")

    client = cci.sync.connect  # resolved before the threads
    accepting = threading.Thread(target=wait)
    accepting.start()
    with client(server.uri, timeout=LIMIT):
        while not ended:
            time.sleep(0.001)
        peer = ended[0]
        receiving = threading.Thread(target=receive)
        receiving.start()
        server.close()
        accepting.join(LIMIT)
        receiving.join(LIMIT)
    assert sorted(map(str, ended[1:])) == ["closed", "received"]


WAITS = {
    "recv": "connection.recv()",
    "accept": "server.accept()",
    "iterate": "[m for m in connection]",
    "event": "cci.Endpoint().wait()",
    "connect": "cci.sync.connect(silent.uri)",
    # Nobody takes messages of this endpoint, so that the second one is not delivered.
    "send": "[connection.send(bytes(2000)) for _ in range(100_000)]",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_every_wait(program, wait):
    source = f"""
        import cci, sys, threading, time
        server = cci.sync.listen(recv_buffers=8)
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(server.accept()))
        thread.start()
        connection = cci.sync.connect(server.uri, send_buffers=8)
        thread.join()
        # An endpoint whose program makes no calls: it answers no request.
        silent = cci.Endpoint()
        try:
            print("waits", flush=True)
            {WAITS[wait]}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        server.close()
    """
    one = program(source)
    assert one.line() == "waits"
    # The wait may not have begun: whenever the signal comes, it ends.
    one.process.send_signal(signal.SIGINT)
    assert one.end() == "interrupted\n"


def test_a_handler_of_a_signal_runs_during_a_wait_and_the_wait_goes_on(program):
    one = program(
        """
        import cci, signal
        signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
        server = cci.sync.listen()
        print(server.uri, flush=True)
        connection = server.accept()
        print(bytes(connection.recv()).decode())
        server.close()
        """
    )
    uri = one.line()
    one.process.send_signal(signal.SIGUSR1)
    assert one.line() == "handled"
    with cci.sync.connect(uri, timeout=LIMIT) as connection:
        connection.send(b"hello")
        assert one.end() == "hello\n"


def test_a_slow_reader_stops_nobody_and_burns_nothing(program):
    """All receive buffers wait for one reader: its senders wait, asleep, and go on then."""
    one = program(
        """
        import cci, time
        with cci.sync.listen(recv_buffers=16) as server:
            print(server.uri, flush=True)
            connection = server.accept()
            input()
            for number in range(200):
                assert connection.recv(timeout=60) == number.to_bytes(2, "big") * 500
            print("read")
        """
    )
    uri = one.line()
    with cci.sync.connect(uri, timeout=LIMIT, send_buffers=16) as connection:
        before = time.thread_time()
        with pytest.raises(cci.TimedOut, match="no room for the message came"):
            for number in range(200):
                connection.post(number.to_bytes(2, "big") * 500, timeout=0.5)
        assert time.thread_time() - before < 0.25
        one.process.stdin.write("\n")
        one.process.stdin.flush()
        # What is posted leaves in calls of this process only: the last call waits for delivery.
        for number in range(number, 199):
            connection.post(number.to_bytes(2, "big") * 500, timeout=LIMIT)
        connection.send((199).to_bytes(2, "big") * 500, timeout=LIMIT)
        assert one.end() == "read\n"


FLOOD = """
    import cci, sys
    with cci.sync.connect(sys.argv[1], send_buffers=64) as connection:
        try:
            for _ in range(10_000):
                connection.post(bytes(500), timeout=1)
        except cci.TimedOut:
            print("full", flush=True)
        sys.stdin.read()
"""


@pytest.mark.parametrize("transport", ["sm", "sock", "tcp"])
def test_a_wait_burns_nothing_while_unread_messages_hold_every_buffer(program, transport):
    with cci.sync.listen(transport, recv_buffers=16) as server:
        flood = program(FLOOD, server.uri)
        unread = server.accept(timeout=LIMIT)
        while True:
            # A wait makes progress, without which nothing comes.
            with pytest.raises(cci.TimedOut):
                server.accept(timeout=0.2)
            if select.select([flood.process.stdout], [], [], 0)[0]:
                break
        before = time.process_time()
        with pytest.raises(cci.TimedOut):
            server.accept(timeout=1)
        assert time.process_time() - before < 0.5
        assert len(unread.recv(timeout=LIMIT)) == 500
