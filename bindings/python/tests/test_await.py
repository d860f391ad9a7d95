"""Awaited connections, in each event loop that is installed."""

import asyncio
import gc

import pytest

import cci


def echo(loop, address, work, **options):
    """Runs `work` with a client of an echo server in the same loop."""

    async def main():
        async with cci.listen(address, **options) as server:

            async def serve():
                connection = await server.accept()
                async for message in connection:
                    await connection.send(message)
                connection.close()

            async def client():
                async with cci.connect(server.uri, timeout=60) as connection:
                    await work(connection)

            await loop.together(serve, client)

    loop.run(main)


def test_messages_come_back(loop, address):
    async def work(connection):
        for size in (0, 1, 56, 57, 1000, connection.max_send_size):
            sent = bytes(index % 251 for index in range(size))
            await connection.send(sent)
            received = await connection.recv()
            assert (len(received), bytes(received)) == (size, sent)
        assert connection.attribute == "RO"

    echo(loop, address, work)


def test_a_message_may_have_any_size(loop, address):
    async def work(connection):
        sent = bytearray(range(256)) * 12_000
        assert len(sent) > connection.max_send_size
        await connection.send(sent)
        assert memoryview(await connection.recv()) == sent

    echo(loop, address, work)


def test_a_message_longer_than_the_receiver_allows_is_refused_and_the_connection_lives(loop):
    async def work(connection):
        with pytest.raises(cci.TooLong, match="longer than the receiver allows"):
            await connection.send(bytes(3_000_000))
        connection.post(bytes(3_000_000))
        # The failure of a posted message is raised by a later call, once.
        with pytest.raises(cci.TooLong):
            await connection.recv()
        await connection.send(b"short")
        assert await connection.recv() == b"short"

    echo(loop, None, work, max_message=2_000_000)


def test_posted_messages_arrive_in_order(loop, address):
    async def work(connection):
        for number in range(500):
            connection.post(number.to_bytes(4, "little"))
        for number in range(500):
            assert await connection.recv() == number.to_bytes(4, "little")

    echo(loop, address, work)


def test_sends_wait_for_room(loop):
    async def main():
        async with cci.listen(send_buffers=4, recv_buffers=8) as server:
            got = []

            async def serve():
                async for message in await server.accept():
                    got.append(bytes(message))

            async def client():
                async with await cci.connect(server.uri, send_buffers=4) as connection:
                    sends = [lambda n=n: connection.send(n.to_bytes(2, "big")) for n in range(100)]
                    await loop.together(*sends)

            await loop.together(serve, client)
            assert sorted(got) == [n.to_bytes(2, "big") for n in range(100)]

    loop.run(main)


def test_a_receive_ends_after_its_time(loop):
    async def work(connection):
        with pytest.raises(cci.TimedOut, match="no message came within 0.05 s"):
            await connection.recv(timeout=0.05)
        with pytest.raises(TimeoutError):
            await connection.recv(timeout=0)
        await connection.send(b"and lives on")
        assert await connection.recv(timeout=60) == b"and lives on"

    echo(loop, None, work)


def test_many_clients_share_one_endpoint_and_each_gets_its_own_answers(loop):
    async def main():
        async with cci.listen() as server:

            async def serve():
                clients = [await server.accept() for _ in range(10)]

                async def answer(connection):
                    async for message in connection:
                        await connection.send(bytes(message) * 2)

                await loop.together(*(lambda c=c: answer(c) for c in clients))

            async def client(number):
                async with cci.connect(server.uri) as connection:
                    for turn in range(20):
                        await connection.send(f"{number}.{turn} ".encode())
                        assert await connection.recv() == f"{number}.{turn} ".encode() * 2

            await loop.together(serve, *(lambda n=n: client(n) for n in range(10)))

    loop.run(main)


def test_a_refused_connect_raises_the_sentence(loop):
    async def main():
        with pytest.raises(cci.Error, match="not a URI|no transport|URI"):
            await cci.connect("nonsense")
        async with cci.listen() as server:
            uri = server.uri
        with pytest.raises((cci.Refused, cci.TimedOut, cci.Disconnected)) as raised:
            await cci.connect(uri, timeout=5)
        assert raised.value.status in (2, 110, 111) and len(str(raised.value)) > 20

    loop.run(main)


def test_a_closed_server_ends_its_accepts_and_the_clients_see_it(loop, address):
    async def main():
        server = cci.listen(address)
        seen = []

        async def serve():
            async for connection in server:
                seen.append(connection)
            seen.append("closed")

        async def client():
            async with cci.connect(server.uri) as connection:
                while not seen:
                    await loop.turn()
                server.close()
                with pytest.raises(cci.Disconnected):
                    await connection.recv(timeout=30)

        await loop.together(serve, client)
        assert seen[-1] == "closed"
        with pytest.raises(cci.Invalid, match="this endpoint has been closed"):
            await server.accept()

    loop.run(main)


def test_use_after_close_is_refused(loop):
    async def work(connection):
        connection.close()
        for use in (connection.send(b"x"), connection.recv()):
            with pytest.raises(cci.Disconnected, match="closed here; connect again"):
                await use
        with pytest.raises(cci.Disconnected):
            connection.post(b"x")
        with pytest.raises(cci.Disconnected):
            _ = connection.max_send_size
        connection.close()

    echo(loop, None, work)


def test_a_cancelled_receive_loses_no_message():
    async def main():
        async with cci.listen() as server:
            async with cci.connect(server.uri) as client:
                peer = await server.accept()
                waiting = asyncio.create_task(client.recv())
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                await peer.send(b"kept")
                assert await client.recv(timeout=60) == b"kept"

    asyncio.run(main())


def test_a_task_that_always_finds_messages_lets_others_run():
    async def main():
        async with cci.listen() as server, cci.connect(server.uri) as client:
            peer = await server.accept()
            turns = 0

            async def other():
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            running = asyncio.create_task(other())
            for number in range(1000):
                client.post(bytes(2))
                await peer.recv()
            running.cancel()
            assert turns >= 10, "the loop had no turn"

    asyncio.run(main())


def test_a_wait_that_spins_gets_the_message_too():
    async def main():
        async with cci.listen(spin=20e-6) as server, cci.connect(server.uri, spin=20e-6) as client:
            peer = await server.accept()
            for number in range(200):
                client.post(number.to_bytes(2, "big"))
                peer.post(await peer.recv())
                assert await client.recv() == number.to_bytes(2, "big")
            with pytest.raises(cci.TimedOut):
                await client.recv(timeout=0.01)

    asyncio.run(main())


class Interrupted:
    """A hub whose look finds a message of another connection, and then raises."""

    def __init__(self, hub, other):
        self._hub, self._other = hub, other

    def __getattr__(self, name):
        return getattr(self._hub, name)

    def try_recv(self, peer, spin=0.0):
        assert spin > 0, "this wait does not look"
        while self._hub.try_recv(self._other) is None:
            assert self._hub.try_recv(peer, 1.0) is None
        raise InterruptedError


def test_a_look_that_raises_wakes_the_waits_of_others_too():
    async def main():
        async with (
            cci.listen("sm", spin=20e-6) as server,
            cci.connect(server.uri),
            cci.connect(server.uri) as second,
        ):
            one, other = await server.accept(), await server.accept()
            # A wait looks by itself only while no other task is ready.
            while not one._reactor.is_idle():
                await asyncio.sleep(0)
            woken = []
            one._reactor.wake_all = woken.extend
            second.post(b"for the other")
            one._hub = Interrupted(one._hub, other._peer)
            with pytest.raises(InterruptedError):
                await one.recv()
            assert woken == [other._peer]

    asyncio.run(main())


def test_another_loop_is_refused_with_the_remedy():
    async def use(connection):
        with pytest.raises(RuntimeError, match="event loop of this connection is closed; connect"):
            await connection.send(b"x")
        with pytest.raises(RuntimeError, match="connect again in the loop that uses it"):
            connection.post(b"x")

    async def make():
        async with asyncio.timeout(60):
            server = cci.listen()
            accepted = asyncio.create_task(server.accept())
            connection = await cci.connect(server.uri)
            return server, connection, await accepted

    server, connection, accepted = asyncio.run(make())
    asyncio.run(use(connection))
    # What is dropped after its loop was closed leaves nothing behind, and says nothing.
    del server, connection, accepted
    gc.collect()


def test_without_a_loop_the_synchronous_twin_is_named():
    coroutine = cci.connect("sm://1/1").__await__()
    with pytest.raises(RuntimeError, match="use cci.sync"):
        coroutine.send(None)
