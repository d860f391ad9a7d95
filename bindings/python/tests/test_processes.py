"""Other processes: children of each kind, peers that die, the end of the interpreter, jobs."""

import multiprocessing
import os
import signal
import socket

import pytest

import cci

LIMIT = 60


def child(uri, answers):
    """What a child does: it calls its parent."""
    with cci.sync.connect(uri, timeout=LIMIT) as connection:
        connection.send(b"from a child", timeout=LIMIT)
        answers.put(bytes(connection.recv(timeout=LIMIT)))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_children_of_each_kind_call_their_parent(method):
    processes = multiprocessing.get_context(method)
    with cci.sync.listen() as server:
        answers = processes.Queue()
        children = [processes.Process(target=child, args=[server.uri, answers]) for _ in range(2)]
        for one in children:
            one.start()
        for _ in children:
            connection = server.accept(timeout=LIMIT)
            assert connection.recv(timeout=LIMIT) == b"from a child"
            connection.send(b"from the parent", timeout=LIMIT)
            with pytest.raises(cci.Disconnected):
                connection.recv(timeout=LIMIT)
        assert [answers.get(timeout=LIMIT) for _ in children] == [b"from the parent"] * 2
        for one in children:
            one.join(LIMIT)
            assert one.exitcode == 0
        answers.close()
        answers.join_thread()


def test_a_forked_child_is_refused_what_its_parent_opened_and_opens_its_own(program):
    one = program(
        """
        import cci, os, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        server = cci.sync.listen()
        connection = server.connect(server.uri)
        accepted = server.accept()
        accepted.post(bytes(2000))
        message = connection.recv()
        endpoint = cci.Endpoint()
        registration = endpoint.register(bytearray(10))
        pid = os.fork()
        if pid == 0:
            uses = [connection.recv, lambda: connection.send(b"x"), server.accept, endpoint.get_event,
                    endpoint.wait, lambda: endpoint.register(bytearray(1)), lambda: server.connect(server.uri)]
            for use in uses:
                try:
                    use()
                except cci.Error as why:
                    assert "belongs to the parent process" in str(why), why
                else:
                    raise AssertionError(use)
            registration.close()
            del message, registration, endpoint
            connection.close()
            server.close()
            with cci.sync.listen() as own:
                own.connect(own.uri).send(b"in the child")
                assert own.accept().recv() == b"in the child"
            print("child", flush=True)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        connection.send(b"still here")
        assert accepted.recv() == b"still here" and len(message) == 2000
        server.close()
        print("parent")
        """
    )
    assert one.end() == "child\nparent\n"


def test_a_child_that_is_forked_while_a_thread_looks_does_not_hang(program):
    one = program(
        """
        import cci, os, signal, threading, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        server = cci.sync.listen("sm", spin=3600.0)
        connection = server.connect(server.uri)
        accepted = server.accept()
        looking = threading.Thread(target=connection.recv)
        looking.start()
        for _ in range(50):
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                try:
                    accepted.post(b"x")
                except cci.Error as why:
                    assert "belongs to the parent process" in str(why), why
                else:
                    raise AssertionError("a child has sent")
                del connection, accepted, server
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        accepted.send(b"enough")
        looking.join()
        print("no child hangs")
        """
    )
    assert one.end() == "no child hangs\n"


PEER = """
    import cci, sys
    with cci.sync.connect(sys.argv[1]) as connection:
        connection.send(b"last words")
        connection.recv()
"""


def test_a_killed_peer_ends_the_reception_after_its_last_message(program, address):
    # Nothing tells a socket of UDP that its peer is gone, but its silence.
    with cci.sync.listen(address, keepalive=1.0 if address == "sock" else None) as server:
        peer = program(PEER, server.uri)
        connection = server.accept(timeout=LIMIT)
        assert connection.recv(timeout=LIMIT) == b"last words"
        peer.process.kill()
        gone = (cci.Disconnected, cci.TimedOut) if address == "sock" else cci.Disconnected
        with pytest.raises(gone, match="its peer is gone|no answer within the timeout"):
            connection.recv(timeout=LIMIT)
        with pytest.raises(gone):
            connection.send(b"to nobody", timeout=LIMIT)
        if address != "sock":
            assert list(connection) == []


def test_a_killed_peer_ends_awaited_calls(program, loop):
    async def main():
        async with cci.listen() as server:
            peer = program(PEER, server.uri)
            connection = await server.accept()
            got = []
            async for message in connection:
                got.append(bytes(message))
                peer.process.kill()
            assert got == [b"last words"]
            with pytest.raises(cci.Disconnected):
                await connection.send(b"to nobody")

    loop.run(main)


def test_a_stopped_peer_is_noticed_by_keepalive(program):
    with cci.sync.listen("sm", keepalive=0.3) as server:
        peer = program(PEER, server.uri)
        connection = server.accept(timeout=LIMIT)
        assert connection.recv(timeout=LIMIT) == b"last words"
        peer.process.send_signal(signal.SIGSTOP)
        with pytest.raises(cci.TimedOut, match="no answer within the timeout"):
            connection.recv(timeout=LIMIT)


ENDS = {
    "nothing is closed": "",
    "an exception ends the program": "raise SystemExit(0)",
    "a cycle holds everything": "cycle = [server, connection, message, view]; cycle.append(cycle)",
    "the module goes first": "import sys; del sys.modules['cci'], sys.modules['cci._errors'], cci",
    "a thread waits": (
        "import threading; threading.Thread(target=endpoint.wait, daemon=True).start()"
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_the_interpreter_is_silent(program, end):
    one = program(
        f"""
        import cci
        server = cci.sync.listen()
        connection = server.connect(server.uri)
        accepted = server.accept()
        accepted.post(bytes(2000))
        message = connection.recv()
        view = memoryview(message)
        endpoint = cci.Endpoint()
        registration = endpoint.register(bytearray(10))
        print("made", flush=True)
        {ENDS[end]}
        """
    )
    assert one.end() == "made\n"


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "holder.append(holder)"])
def test_the_end_of_a_program_with_open_awaited_connections_is_silent(program, end):
    one = program(
        f"""
        import asyncio, cci
        holder = []
        async def main():
            server = cci.listen()
            accepting = asyncio.create_task(server.accept())
            connection = await cci.connect(server.uri)
            accepted = await accepting
            accepted.post(b"never received")
            receiving = asyncio.create_task(accepted.recv())
            await asyncio.sleep(0)
            holder.extend([server, connection, accepted])
            print("made", flush=True)
            {end}
        asyncio.run(main())
        """
    )
    assert one.end() == "made\n"


def test_ctrl_c_ends_an_event_loop_that_waits(program):
    one = program(
        """
        import asyncio, cci
        async def main():
            async with cci.listen() as server:
                print("waits", flush=True)
                await server.accept()
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert one.line() == "waits"
    one.process.send_signal(signal.SIGINT)
    assert one.end() == "interrupted\n"


RANK = """
    import cci
    job = cci.job(timeout=60)
    assert job.exchange(b"%d" % job.rank) == [b"%d" % rank for rank in range(job.size)]
    job.publish("greeting", b"hello from %d" % job.rank)
    other = 1 - job.rank
    assert job.look_up(other, "greeting") == b"hello from %d" % other
    with cci.sync.listen(job) as server:
        out = server.connect(f"job:{other}", timeout=60)
        back = server.accept(timeout=60)
        out.send(b"rank %d" % job.rank, timeout=60)
        print(job.rank, job.size, bytes(back.recv(timeout=60)).decode())
        try:
            server.connect("job:2")
        except cci.Error as why:
            assert "no such rank" in str(why), why
        job.exchange()
"""


def free_ports():
    """A port that is free, and whose next one is: the store listens at the next one."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


def test_ranks_of_a_job_connect_to_each_other(program):
    port = free_ports()
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = [program(RANK, env={**os.environ, **place, "RANK": str(rank)}) for rank in range(2)]
    assert [rank.end() for rank in ranks] == ["0 2 rank 1\n", "1 2 rank 0\n"]


def test_ctrl_c_ends_the_wait_for_ranks(program):
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "RANK": "1"}
    one = program(
        """
        import cci, os
        try:
            print("waits", flush=True)
            cci.job()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(0)
        """,
        env={**os.environ, **place},
    )
    assert one.line() == "waits"
    one.process.send_signal(signal.SIGINT)
    assert one.end() == "interrupted\n"


def test_a_forked_child_is_refused_its_parents_job(program):
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports())}
    one = program(
        """
        import cci, os, signal, sys, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        job = cci.job()
        server = cci.sync.listen(job)
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            for use in [job.exchange, lambda: job.publish("key", b""), lambda: job.look_up(0, "key")]:
                try:
                    use()
                except cci.Error as why:
                    assert "belongs to the parent process" in str(why), why
                else:
                    raise AssertionError(use)
            with cci.sync.listen() as own:
                try:
                    own.connect("job:0", timeout=10)
                except cci.Error as why:
                    assert "names a rank" in str(why), why
                else:
                    raise AssertionError("a child has asked its parent's job")
                own.connect(own.uri).send(b"in the child")
                assert own.accept().recv() == b"in the child"
            # With the job, which goes at the end of the interpreter.
            sys.exit()
        assert os.waitpid(pid, 0)[1] == 0
        assert job.exchange(b"here") == [b"here"]
        server.close()
        """,
        env={**os.environ, **place},
    )
    assert one.end() == ""


def test_a_child_that_is_forked_while_a_thread_ends_registrations_registers_its_own(program):
    one = program(
        """
        import cci, os, signal, threading, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        endpoint = cci.Endpoint()
        is_over = threading.Event()

        def register():
            while not is_over.is_set():
                endpoint.register(bytearray(10)).close()

        registering = threading.Thread(target=register)
        registering.start()
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                own = cci.Endpoint()
                own.register(bytearray(10)).close()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        is_over.set()
        registering.join()
        print("no child hangs")
        """
    )
    assert one.end() == "no child hangs\n"
