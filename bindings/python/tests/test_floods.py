"""Messages that nobody reads: whoever sends them, others are served."""

import select
import time

import pytest

import cci

LIMIT = 60

# Posts messages of a size, and says how many have arrived, or that there was no room for as long as
# the last argument says: where all have room, no shorter than a busy machine may take.
FLOOD = """
    import cci, sys
    count, more, limit = int(sys.argv[2]), bytes(int(sys.argv[3]) - 4), float(sys.argv[4])
    with cci.sync.connect(sys.argv[1]) as connection:
        try:
            for number in range(count - 1):
                connection.post(number.to_bytes(4, "big") + more, timeout=limit)
            # What was posted leaves in calls: this one waits until all have been delivered.
            connection.send((count - 1).to_bytes(4, "big") + more, timeout=30)
            print(count, flush=True)
        except cci.TimedOut:
            print("full", flush=True)
        sys.stdin.read()
"""


def has_line(program):
    return bool(select.select([program.process.stdout], [], [], 0)[0])


def serve_others(server, until):
    """Makes progress for others, as a server does that waits for its next client."""
    while not until():
        with pytest.raises(cci.TimedOut):
            server.accept(timeout=0.05)


def echoes(program, server, count=20):
    """A second client that comes now gets its answers."""
    second = program(
        """
        import cci, sys
        with cci.sync.connect(sys.argv[1], timeout=60) as connection:
            for number in range(int(sys.argv[2])):
                connection.send(b"%d" % number, timeout=60)
                assert connection.recv(timeout=60) == b"%d" % number
            connection.send(bytes(1_500_000), timeout=60)
        print("served")
        """,
        server.uri,
        str(count),
    )
    connection = server.accept(timeout=LIMIT)
    for _ in range(count):
        connection.post(connection.recv(timeout=LIMIT), timeout=LIMIT)
    assert len(connection.recv(timeout=LIMIT)) == 1_500_000
    assert second.end() == "served\n"


@pytest.mark.parametrize("count, size", [(20_000, 20), (5_000, 2000)], ids=["many", "long"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "alive"])
def test_a_client_that_floods_stops_nobody_and_what_it_sent_is_read(program, address, is_killed, count, size):
    # A peer that is killed says nothing over UDP.
    keepalive = 1.0 if is_killed and address == "sock" else None
    with cci.sync.listen(address, keepalive=keepalive) as server:
        one = program(FLOOD, server.uri, str(count), str(size), "30")
        unread = server.accept(timeout=LIMIT)
        serve_others(server, lambda: has_line(one))
        assert int(one.line()) == count
        if is_killed:
            one.process.kill()
            one.process.wait()
        echoes(program, server)
        for number in range(count):
            message = bytes(unread.recv(timeout=LIMIT))
            assert message == number.to_bytes(4, "big") + bytes(size - 4)
        if is_killed:
            with pytest.raises(cci.Disconnected):
                unread.recv(timeout=LIMIT)


def test_clients_that_flood_and_die_leave_room_for_the_next(program, address):
    """Each has sent more than there are buffers, and nobody has read it yet."""
    keepalive = 1.0 if address == "sock" else None
    with cci.sync.listen(address, recv_buffers=256, keepalive=keepalive) as server:
        left = []
        for _ in range(4):
            one = program(FLOOD, server.uri, "600", "1000", "30")
            left.append(server.accept(timeout=LIMIT))
            serve_others(server, lambda: has_line(one))
            assert int(one.line()) == 600
            one.process.kill()
            one.process.wait()
        echoes(program, server)
        assert [len([m for m in connection]) for connection in left] == [600] * 4


def test_clients_that_nobody_accepts_and_that_die_do_not_fill_the_memory(program):
    """16 receive buffers, for which 256 KiB are copied: the last clients are still served."""
    with cci.sync.listen("sm", recv_buffers=16) as server:
        waiting = server.connect(server.uri, timeout=LIMIT)
        here = server.accept(timeout=LIMIT)
        for _ in range(8):
            one = program(FLOOD, server.uri, "100", "1000", "1")
            end = time.monotonic() + LIMIT
            while not has_line(one) and time.monotonic() < end:
                with pytest.raises(cci.TimedOut):
                    here.recv(timeout=0.05)
            one.process.kill()
            one.process.wait()
            with pytest.raises(cci.TimedOut):
                here.recv(timeout=0.2)
        waiting.send(b"alive", timeout=LIMIT)
        assert here.recv(timeout=LIMIT) == b"alive"
        # Some of them are gone, as if they had never come; the rest has what it sent.
        while True:
            try:
                connection = server.accept(timeout=0.2)
            except cci.TimedOut:
                break
            assert 0 < len([m for m in connection]) <= 100
        echoes(program, server)


def test_an_unread_connection_does_not_stop_another_of_the_same_client(program, address):
    """Both are of one endpoint of the client."""
    server = program(
        """
        import cci, sys, threading
        with cci.sync.listen(sys.argv[1] or None) as server:
            print(server.uri, flush=True)
            first, second = server.accept(), server.accept()
            for number in range(6000):
                first.post(number.to_bytes(4, "big") + bytes(60))
            for message in second:
                second.send(message)
            first.send(b"end")
        """,
        address or "",
    )
    uri = server.line()
    with cci.sync.connect(uri, timeout=LIMIT) as first, cci.sync.connect(uri, timeout=LIMIT) as second:
        # Which of them the server has first is its word: the one that gets something.
        ends = [first, second]
        for number in range(50):
            ends[1].post(b"%d" % number, timeout=LIMIT)
            assert ends[1].recv(timeout=LIMIT) == b"%d" % number
        ends[1].close()
        for number in range(6000):
            assert bytes(ends[0].recv(timeout=LIMIT))[:4] == number.to_bytes(4, "big")
        assert ends[0].recv(timeout=LIMIT) == b"end"
        server.end()


def test_tasks_of_other_connections_go_on_beside_one_that_is_not_read(loop, program, address):
    async def main():
        async with cci.listen(address) as server:
            one = program(FLOOD, server.uri, "20000", "20", "30")
            unread = await server.accept(timeout=LIMIT)
            while not has_line(one):
                with pytest.raises(cci.TimedOut):
                    await server.accept(timeout=0.05)
            assert int(one.line()) == 20000
            async with cci.connect(server.uri, timeout=LIMIT) as client:
                peer = await server.accept(timeout=LIMIT)
                for number in range(50):
                    client.post(b"%d" % number)
                    await peer.send(await peer.recv(timeout=LIMIT), timeout=LIMIT)
                    assert await client.recv(timeout=LIMIT) == b"%d" % number
            one.process.kill()
            for number in range(20000):
                assert bytes(await unread.recv(timeout=LIMIT))[:4] == number.to_bytes(4, "big")

    loop.run(main)


def test_messages_that_were_copied_are_as_those_in_place():
    with cci.sync.listen("sm", recv_buffers=64) as server:
        client = server.connect(server.uri, timeout=LIMIT)
        peer = server.accept(timeout=LIMIT)
        for number in range(64):
            client.send(bytes([number]) * (number * 50), timeout=LIMIT)
        kept = [peer.recv(timeout=LIMIT) for _ in range(64)]
        for number, message in enumerate(kept):
            expected = bytes([number]) * (number * 50)
            assert (len(message), bytes(message), message) == (len(expected), expected, expected)
            view = memoryview(message)
            assert view.readonly and view == expected and view.nbytes == len(expected)
    assert bytes(kept[40]) == bytes([40]) * 2000


ECHO = """
    import cci, sys
    with cci.sync.listen(sys.argv[1] or None, recv_buffers=int(sys.argv[2]) or None) as server:
        print(server.uri, flush=True)
        try:
            for connection in server:
                for message in connection:
                    connection.post(message, timeout=60)
        except cci.Disconnected:
            pass
"""


def test_twenty_thousand_posts_to_a_server_that_posts_them_back_come_back(program, address):
    echo = program(ECHO, address or "", "0")
    with cci.sync.connect(echo.line(), timeout=LIMIT) as connection:
        for number in range(20_000):
            connection.post(number.to_bytes(4, "big"), timeout=LIMIT)
        for number in range(20_000):
            assert connection.recv(timeout=LIMIT) == number.to_bytes(4, "big")


def test_two_that_post_to_each_other_and_receive_nothing_are_told_what_to_do(program):
    echo = program(ECHO, "sm", "16")
    with cci.sync.connect(echo.line(), timeout=LIMIT, recv_buffers=16, send_buffers=16) as connection:
        posted = 0
        with pytest.raises(cci.TimedOut, match="no room for the message came within 2 s; receive what"):
            for _ in range(10_000):
                connection.post(posted.to_bytes(4, "big") + bytes(1000), timeout=2)
                posted += 1
        # Whoever does that goes on.
        for number in range(posted):
            assert bytes(connection.recv(timeout=LIMIT))[:4] == number.to_bytes(4, "big")


def test_a_post_waits_for_room_thirty_seconds_at_most():
    import inspect

    assert inspect.signature(cci.sync.Connection.post).parameters["timeout"].default == 30


ENDLESS = """
    import cci, sys
    with cci.sync.connect(sys.argv[1]) as connection:
        print("begins", flush=True)
        try:
            while True:
                connection.post(bytes(8), timeout=60)
        except cci.Disconnected:
            pass
"""


@pytest.mark.parametrize("transport", ["sm", "sock", "tcp"])
def test_a_flood_of_one_does_not_hold_up_the_deadline_of_a_wait_for_another(program, transport):
    with cci.sync.listen(transport) as server:
        quiet = server.connect(server.uri, timeout=LIMIT)
        other = server.accept(timeout=LIMIT)
        floods = [program(ENDLESS, server.uri) for _ in range(2)]
        busy = [server.accept(timeout=LIMIT) for _ in floods]
        assert [one.line() for one in floods] == ["begins"] * 2
        start = time.monotonic()
        with pytest.raises(cci.TimedOut):
            quiet.recv(timeout=0.1)
        # Without the look at the deadline: until all copies are full, or without end.
        assert time.monotonic() - start < 2
        for end in (*busy, other):
            end.close()


# Posts for ever, and says so when it has had to wait for the first time.
RELENTLESS = """
    import cci, sys
    with cci.sync.connect(sys.argv[1]) as connection:
        number, is_told = 0, False
        while True:
            try:
                connection.post(number.to_bytes(8, "big") + bytes(992), timeout=1)
                number += 1
            except cci.TimedOut:
                if not is_told:
                    print("waits", flush=True)
                is_told = True
            except cci.Disconnected:
                break
"""


def anonymous_memory():
    """Bytes of this process that are its own."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines["RssAnon"].split()[0]) * 1024


def test_a_flood_without_end_lets_others_go_on_and_fills_no_memory(program, address):
    with cci.sync.listen(address) as server:
        before = anonymous_memory()
        flood = program(RELENTLESS, server.uri)
        unread = server.accept(timeout=LIMIT)
        serve_others(server, lambda: has_line(flood))
        assert flood.line() == "waits"
        second = program(
            """
            import cci, sys
            with cci.sync.connect(sys.argv[1], timeout=60) as connection:
                for number in range(200):
                    connection.send(bytes(1 << 20), timeout=60)
                    connection.send(b"%d" % number, timeout=60)
                    assert connection.recv(timeout=60) == b"%d" % number
                for number in range(10_000):
                    connection.post(b"%d" % number, timeout=60)
                assert connection.recv(timeout=60) == b"end"
            print("served")
            """,
            server.uri,
        )
        other = server.accept(timeout=LIMIT)
        for number in range(200):
            assert len(other.recv(timeout=LIMIT)) == 1 << 20
            other.post(other.recv(timeout=LIMIT), timeout=LIMIT)
        for number in range(10_000):
            assert other.recv(timeout=LIMIT) == b"%d" % number
        other.send(b"end", timeout=LIMIT)
        assert second.end() == "served\n"
        assert anonymous_memory() - before < 160 << 20
        # It goes on with what is received, in order.
        for number in range(100_000):
            assert bytes(unread.recv(timeout=LIMIT))[:8] == number.to_bytes(8, "big")
        unread.close()
        flood.process.kill()


def test_a_peer_that_waits_is_reached_by_what_this_side_begins(program):
    """Over sm, what answers stands in line behind the messages that nobody receives."""
    with cci.sync.listen("sm", recv_buffers=64) as server:
        flood = program(
            """
            import cci, sys, threading
            with cci.sync.connect(sys.argv[1]) as connection:
                memory = bytearray(1 << 20)
                with connection.register(memory, read=True, write=True) as registration:
                    connection.send(bytes(registration.handle))
                    is_full = False
                    while not is_full:
                        try:
                            connection.post(bytes(1000), timeout=1)
                        except cci.TimedOut:
                            is_full = True
                    print("waits", flush=True)
                    message = connection.recv(timeout=60)
                    print(len(message), flush=True)
                    sys.stdin.read()
            """,
            server.uri,
        )
        unread = server.accept(timeout=LIMIT)
        handle = bytes(unread.recv(timeout=LIMIT))
        serve_others(server, lambda: has_line(flood))
        assert flood.line() == "waits"
        unread.send(bytes(2 << 20), timeout=LIMIT)
        assert flood.line() == str(2 << 20)
        assert len(handle) == 32
        flood.process.kill()
