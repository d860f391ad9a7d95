"""Cancelling at every step: nothing is lost, and whoever waits longest is served first."""

import asyncio
import types

import pytest

import cci

# More than the waits in a row after which other tasks get their turn.
MANY = 100


@types.coroutine
def cancelled_at(step, cancel, inner):
    """Runs a coroutine, and cancels its task when it suspends for the `step`th time, from 0."""
    taken = inner.__await__()
    value, at = None, 0
    while True:
        try:
            trap = taken.send(value)
        except StopIteration as ended:
            return ended.value
        if at == step:
            cancel()
        at += 1
        try:
            value = yield trap
        except BaseException as raised:
            try:
                trap = taken.throw(raised)
            except StopIteration as ended:
                return ended.value
            value = yield trap


async def attempt(loop, step, call):
    """The result of a call, in a list; nothing where the cancellation at this step has ended it."""
    done = []
    if loop.name == "trio":
        import trio

        with trio.CancelScope() as scope:
            done.append(await cancelled_at(step, scope.cancel, call()))
        return done

    async def main():
        done.append(await cancelled_at(step, asyncio.current_task().cancel, call()))

    await asyncio.wait([asyncio.create_task(main())])
    return done


async def pair(server):
    client = await cci.connect(server.uri, timeout=60)
    return client, await server.accept(timeout=60)


@pytest.mark.parametrize("step", range(4))
def test_a_receive_that_is_cancelled_at_any_step_loses_nothing(loop, step):
    async def main():
        async with cci.listen() as server:
            client, peer = await pair(server)
            got = []
            for number in range(MANY):
                client.post(number.to_bytes(2, "big"))
            for number in range(MANY, 2 * MANY):
                # Some wait already, others have to come.
                client.post(number.to_bytes(2, "big"))
                got += [bytes(m) for m in await attempt(loop, step, peer.recv)]
                got += [bytes(m) for m in await attempt(loop, step, peer.__anext__)]
            while len(got) < 2 * MANY:
                got.append(bytes(await peer.recv(timeout=60)))
            assert got == [number.to_bytes(2, "big") for number in range(2 * MANY)]

    loop.run(main)


@pytest.mark.parametrize("step", range(4))
def test_a_receive_that_waits_and_is_cancelled_at_any_step_loses_nothing(loop, step):
    async def main():
        async with cci.listen() as server:
            client, peer = await pair(server)
            for number in range(MANY):
                got = []

                async def receive():
                    got.extend(await attempt(loop, step, peer.recv))

                async def send():
                    await client.send(number.to_bytes(2, "big"))

                # A second task waits behind the one that is cancelled.
                async def receive_else():
                    got.append(await peer.recv(timeout=60))

                async def another():
                    await client.send(b"second")

                await loop.together(receive, receive_else, send, another)
                if len(got) < 2:
                    got.append(await peer.recv(timeout=60))
                assert sorted(map(bytes, got)) == sorted([number.to_bytes(2, "big"), b"second"])

    loop.run(main)


@pytest.mark.parametrize("step", range(4))
def test_an_accept_that_is_cancelled_at_any_step_loses_no_client(loop, step):
    async def main():
        async with cci.listen() as server:
            clients, accepted = 70, []
            connections = []

            async def call():
                for _ in range(clients):
                    connections.append(await cci.connect(server.uri, timeout=60))

            async def serve():
                while len(accepted) < clients:
                    if not (taken := await attempt(loop, step, server.accept)):
                        taken = [await server.accept(timeout=60)]
                    accepted.extend(taken)

            await loop.together(call, serve)
            with pytest.raises(cci.TimedOut):
                await server.accept(timeout=0)

    loop.run(main)


@pytest.mark.parametrize("step", range(4))
def test_a_connect_that_is_cancelled_at_any_step_leaves_no_connection_open(loop, step):
    async def main():
        async with cci.listen() as server:
            client, peer = await pair(server)
            for _ in range(70):
                made = await attempt(loop, step, lambda: cci.connect(server.uri, timeout=60))
                for connection in made:
                    await connection.send(b"alive")
                    connection.close()
            # Whatever the server has accepted ends: each was closed, or given up.
            while True:
                try:
                    accepted = await server.accept(timeout=0.2)
                except cci.TimedOut:
                    break
                with pytest.raises(cci.Disconnected):
                    while await accepted.recv(timeout=60) is not None:
                        pass
            await client.send(b"still here")
            assert await peer.recv(timeout=60) == b"still here"

    loop.run(main)


@pytest.mark.parametrize("step", range(4))
def test_a_send_that_is_cancelled_at_any_step_leaves_no_hole_and_no_double(loop, step):
    async def main():
        async with cci.listen(recv_buffers=16) as server:
            client = await cci.connect(server.uri, timeout=60, send_buffers=4)
            peer = await server.accept(timeout=60)
            delivered, sent = [], set()

            async def send():
                for number in range(MANY):
                    if await attempt(loop, step, lambda n=number: client.send(n.to_bytes(2, "big"))):
                        sent.add(number)
                await client.send(b"end")

            async def receive():
                async for message in peer:
                    if message == b"end":
                        return
                    delivered.append(int.from_bytes(bytes(message), "big"))

            await loop.together(send, receive)
            assert delivered == sorted(set(delivered)), "in order, once"
            assert sent <= set(delivered), "what was told to be delivered is"

    loop.run(main)


@pytest.mark.parametrize("step", range(4))
def test_remote_memory_access_that_is_cancelled_at_any_step_ends_by_itself(loop, step):
    async def main():
        async with cci.listen() as server:
            client, peer = await pair(server)
            with peer.register(bytearray(b"x" * 64)) as there:
                handle = there.handle
                local = bytearray(64)
                with client.register(local) as here:

                    async def act():
                        for _ in range(MANY):
                            await attempt(loop, step, lambda: client.read(here, handle))
                            await attempt(loop, step, lambda: client.fetch_add(handle, 0))
                            await attempt(loop, step, lambda: client.write(here, handle, length=8))
                        await client.read(here, handle)

                    await loop.together(act)
                    assert local == b"x" * 64
            await client.send(b"still here")
            assert await peer.recv(timeout=60) == b"still here"

    loop.run(main)


def test_a_task_that_was_woken_and_is_cancelled_then_leaves_its_message_to_the_next():
    async def main():
        async with cci.listen() as server:
            client, peer = await pair(server)
            first = asyncio.create_task(peer.recv(timeout=60))
            second = asyncio.create_task(peer.recv(timeout=60))
            await asyncio.sleep(0)
            client.post(b"one")
            # What the loop would do: it wakes the first.
            while peer._reactor.hub.progress() == []:
                await asyncio.sleep(0)
            peer._reactor.wake_all([peer._peer])
            first.cancel()
            assert await second == b"one"
            with pytest.raises(asyncio.CancelledError):
                await first

    asyncio.run(main())


def test_closing_a_coroutine_at_any_step_loses_nothing():
    async def main():
        async with cci.listen() as server:
            client, peer = await pair(server)
            got = []
            for number in range(MANY):
                client.post(number.to_bytes(2, "big"))
                receiving = peer.recv()
                try:
                    receiving.send(None)
                except StopIteration as ended:
                    got.append(bytes(ended.value))
                receiving.close()
                await asyncio.sleep(0)
            while len(got) < MANY:
                got.append(bytes(await peer.recv(timeout=60)))
            assert got == [number.to_bytes(2, "big") for number in range(MANY)]

    asyncio.run(main())


def test_tasks_that_wait_for_messages_get_them_in_turn(loop):
    async def main():
        async with cci.listen() as server:
            client, peer = await pair(server)
            order = []

            async def receive(name):
                for _ in range(3):
                    order.append((name, bytes(await peer.recv(timeout=60))))

            async def send():
                for _ in range(5):
                    await loop.turn()
                for number in range(15):
                    await client.send(b"%d" % number)

            waiting = []

            async def begin(name):
                # One after the other, whatever order the loop has.
                while len(waiting) != name:
                    await loop.turn()
                waiting.append(name)
                await receive(name)

            await loop.together(send, *(lambda n=n: begin(n) for n in range(5)))
            assert [message for _, message in order] == [b"%d" % number for number in range(15)]
            assert [name for name, _ in order] == list(range(5)) * 3

    loop.run(main)


def test_tasks_that_wait_for_clients_get_them_in_turn(loop):
    async def main():
        async with cci.listen() as server:
            order, waiting, clients = [], [], []

            async def begin(name):
                while len(waiting) != name:
                    await loop.turn()
                waiting.append(name)
                order.append((name, await server.accept(timeout=60)))

            async def call():
                for _ in range(5):
                    clients.append(await cci.connect(server.uri, timeout=60))

            await loop.together(call, *(lambda n=n: begin(n) for n in range(5)))
            assert [name for name, _ in order] == list(range(5))

    loop.run(main)


def test_tasks_that_wait_for_room_get_it_in_turn(loop):
    async def main():
        async with cci.listen(recv_buffers=8) as server:
            client = await cci.connect(server.uri, timeout=60, send_buffers=2)
            peer = await server.accept(timeout=60)
            waiting, got = [], []

            async def begin(name):
                while len(waiting) != name:
                    await loop.turn()
                waiting.append(name)
                await client.send(b"%d" % name)

            async def receive():
                for _ in range(60):
                    got.append(int(bytes(await peer.recv(timeout=60))))

            await loop.together(receive, *(lambda n=n: begin(n) for n in range(60)))
            assert got == list(range(60))

    loop.run(main)


def test_one_that_sends_without_pause_leaves_room_to_others(loop):
    """Of two connections of one endpoint with one send buffer each gets its turns."""

    async def main():
        async with cci.listen() as server:
            clients = [await cci.connect(server.uri, timeout=60, send_buffers=1) for _ in range(2)]
            peers = [await server.accept(timeout=60) for _ in range(2)]
            counts = [0, 0]

            async def send(number):
                while min(counts) < 20 and max(counts) < 2000:
                    await clients[number].send(b"x")
                    counts[number] += 1
                clients[number].close()

            async def receive(number):
                async for _ in peers[number]:
                    pass

            tasks = [lambda n=n: send(n) for n in range(2)] + [lambda n=n: receive(n) for n in range(2)]
            await loop.together(*tasks)
            assert min(counts) >= 20, counts

    loop.run(main)


def test_a_task_that_waits_for_room_ends_when_its_connection_is_closed(loop):
    async def main():
        with cci.Endpoint() as silent:
            # A program that takes no messages.
            opened = []

            async def serve():
                while not opened:
                    event = silent.get_event()
                    if event is not None and event.kind == "request":
                        event.accept()
                    await loop.turn()

            async def client():
                connection = await cci.connect(silent.uri, timeout=60, send_buffers=4)
                opened.append(connection)
                for _ in range(5):
                    await loop.turn()
                ended = []

                async def send():
                    try:
                        await connection.send(bytes(100))
                        ended.append("sent")
                    except cci.Disconnected:
                        ended.append("closed")

                async def close():
                    for _ in range(20):
                        await loop.turn()
                    connection.close()

                await loop.together(close, *[send] * 12)
                assert len(ended) == 12 and "closed" in ended

            await loop.together(serve, client)

    loop.run(main)
