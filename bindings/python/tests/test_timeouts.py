"""Every time that a program gives is checked before anything happens."""

import asyncio

import pytest

import cci

WRONG = [
    (-1, ValueError, "timeout is -1; give seconds from 0 on, or None"),
    (-0.001, ValueError, "timeout is -0.001; give seconds"),
    (float("nan"), ValueError, "timeout is NaN; give seconds"),
    (float("-inf"), ValueError, "timeout is -inf; give seconds"),
    (-(10**400), ValueError, "timeout is -inf; give seconds"),
    ("1", TypeError, "timeout is a str; give seconds as a number, or None"),
    ([], TypeError, "timeout is a list; give seconds as a number, or None"),
]

CALLS = {
    "recv": lambda end, memory, **more: end.recv(**more),
    "send": lambda end, memory, **more: end.send(b"x", **more),
    "write": lambda end, memory, **more: end.write(memory, bytes(32), **more),
    "read": lambda end, memory, **more: end.read(memory, bytes(32), **more),
    "fetch_add": lambda end, memory, **more: end.fetch_add(bytes(32), 1, **more),
    "compare_swap": lambda end, memory, **more: end.compare_swap(bytes(32), 0, 1, **more),
}
SYNC = CALLS | {"post": lambda end, memory, **more: end.post(b"x", **more)}
SERVER = {
    "accept": lambda server, **more: server.accept(**more),
    "connect": lambda server, **more: server.connect(server.uri, **more),
}


@pytest.fixture(scope="module")
def synchronous():
    with cci.sync.listen("sm") as server:
        # A client and a message wait already.
        end = server.connect(server.uri, timeout=60)
        other = server.accept(timeout=60)
        server.connect(server.uri, timeout=60)
        other.send(b"kept", timeout=60)
        with end.register(bytearray(8)) as memory:
            yield server, end, other, memory


@pytest.mark.parametrize("name", SYNC | SERVER)
@pytest.mark.parametrize("timeout, kind, sentence", WRONG)
def test_a_synchronous_call_refuses_a_wrong_time(synchronous, name, timeout, kind, sentence):
    server, end, other, memory = synchronous
    with pytest.raises(kind) as raised:
        if name in SERVER:
            SERVER[name](server, timeout=timeout)
        else:
            SYNC[name](end, memory, timeout=timeout)
    assert sentence in str(raised.value)


def test_a_refused_time_takes_and_sends_nothing(synchronous):
    server, end, other, memory = synchronous
    assert end.recv(timeout=60) == b"kept"
    with pytest.raises(cci.TimedOut):
        other.recv(timeout=0)
    server.accept(timeout=60)
    with pytest.raises(cci.TimedOut):
        server.accept(timeout=0)


@pytest.mark.parametrize("timeout, kind, sentence", WRONG)
def test_an_awaited_call_refuses_a_wrong_time(loop, timeout, kind, sentence):
    async def refused(call):
        with pytest.raises(kind) as raised:
            await call
        assert sentence in str(raised.value)

    async def main():
        async with cci.listen("sm") as server, cci.connect(server.uri, timeout=60) as end:
            other = await server.accept(timeout=60)
            await other.send(b"kept")
            second = await cci.connect(server.uri, timeout=60)
            with end.register(bytearray(8)) as memory:
                for call in CALLS.values():
                    await refused(call(end, memory, timeout=timeout))
            for call in SERVER.values():
                await refused(call(server, timeout=timeout))
            await refused(cci.connect(server.uri, timeout=timeout))
            # Nothing was taken, sent or begun.
            assert await end.recv(timeout=60) == b"kept"
            with pytest.raises(cci.TimedOut):
                await other.recv(timeout=0)
            await server.accept(timeout=60)
            with pytest.raises(cci.TimedOut):
                await server.accept(timeout=0)
            second.close()

    loop.run(main)


@pytest.mark.parametrize("timeout, kind, sentence", WRONG)
def test_the_calls_of_cci_itself_refuse_a_wrong_time(timeout, kind, sentence):
    with cci.Endpoint("sm") as end:
        calls = [
            lambda: end.wait(timeout),
            lambda: end.connect(end.uri, timeout=timeout),
            lambda: cci.sync.connect(end.uri, timeout=timeout),
            lambda: cci.job(timeout=timeout),
        ]
        for call in calls:
            with pytest.raises(kind) as raised:
                call()
            assert sentence in str(raised.value)


@pytest.mark.parametrize("option", ["keepalive", "send_timeout", "spin"])
@pytest.mark.parametrize("value, kind, sentence", WRONG)
@pytest.mark.parametrize("opener", ["listen", "connect", "sync.listen", "sync.connect"])
def test_opening_refuses_a_wrong_time(opener, option, value, kind, sentence):
    async def main():
        more = {option: value}
        if opener == "listen":
            cci.listen("sm", **more)
        elif opener == "connect":
            await cci.connect("sm://1/1", **more)
        elif opener == "sync.listen":
            cci.sync.listen("sm", **more)
        else:
            cci.sync.connect("sm://1/1", **more)

    with pytest.raises(kind) as raised:
        asyncio.run(main())
    assert sentence.replace("timeout", option) in str(raised.value)


def test_a_task_cannot_spin_without_end():
    for spin in (float("inf"), None, 1e30):
        with pytest.raises(ValueError, match="spin is .*; give seconds from 0 on, as 20e-6"):
            cci.listen("sm", spin=spin)


@pytest.mark.parametrize("endless", [None, float("inf"), 1e300, 10**400, 2**63, True])
def test_long_times_are_no_limit(loop, endless):
    async def main():
        async with cci.listen("sm") as server, cci.connect(server.uri, timeout=endless) as client:
            peer = await server.accept(timeout=endless)

            async def receive():
                assert await peer.recv(timeout=endless) == b"x"

            async def send():
                await loop.turn()
                await client.send(b"x", timeout=endless)

            await loop.together(receive, send)

    loop.run(main)
