"""Measures the package beside the Rust API, a bare event loop and pyzmq, in one run.

    python benchmark.py CCI [SECONDS]

CCI is the command `cci`, which measures the Rust API; SECONDS is the time for each of our rows, 3
when absent. Each row has its bar (docs/design/python.md). What is compared is measured in turn,
several times. A machine that does other work meanwhile spoils the figures; the ratios less so.
"""

import asyncio
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SIZE = 8
BLOCK = 50
BULK = 64 << 20
# How often everything is measured in turn, and in each turn what sleeps, whose times change with
# how deep the processors sleep, and the pair of bulk transfers.
ROUNDS = 5
SLEEPS = 3
BULK_PAIRS = 4


# The processors of this run: servers are pinned to the first, clients to the last.
PROCESSORS = sorted(os.sched_getaffinity(0))


# The servers, each in a process of its own.


def serve_sync(transport):
    import cci

    with cci.sync.listen(transport) as server:
        print(server.uri, flush=True)
        connection = server.accept()
        for message in connection:
            connection.post(message)


def serve_asyncio(transport, spin):
    import cci

    async def main():
        async with cci.listen(transport, spin=float(spin)) as server:
            print(server.uri, flush=True)
            connection = await server.accept()
            async for message in connection:
                connection.post(message)

    asyncio.run(main())


class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.transport.sendto(data, address)


def serve_udp():
    async def main():
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Echo, ("127.0.0.1", 0))
        print(transport.get_extra_info("sockname")[1], flush=True)
        await asyncio.sleep(3600)

    asyncio.run(main())


# A wake-up and nothing else: two pipes, one for each way, by which the ends wake each other.


async def wake_ups(waits, wakes, begins, times):
    loop = asyncio.get_running_loop()
    woken = None

    def readable():
        os.read(waits, 1)
        woken.set_result(None)

    loop.add_reader(waits, readable)
    for _ in times:
        woken = loop.create_future()
        if begins:
            os.write(wakes, b".")
        await woken
        if not begins:
            os.write(wakes, b".")
    loop.remove_reader(waits)


def serve_pipe():
    folder = tempfile.mkdtemp()
    names = [os.path.join(folder, name) for name in ("there", "back")]
    for name in names:
        os.mkfifo(name)
    there, back = (os.open(name, os.O_RDWR) for name in names)
    print(*names, flush=True)
    asyncio.run(wake_ups(there, back, False, itertools.repeat(None)))


def call_pipe(names, seconds):
    there, back = (os.open(name, os.O_RDWR) for name in names.split())
    # The server, which is ended by force, leaves nothing behind.
    shutil.rmtree(os.path.dirname(names.split()[0]))
    return asyncio.run(async_blocks(seconds, lambda: wake_ups(back, there, True, range(BLOCK))))


def serve_zmq():
    import zmq.asyncio

    async def main():
        with zmq.asyncio.Context() as context, context.socket(zmq.PAIR) as socket:
            print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
            while True:
                await socket.send(await socket.recv())

    asyncio.run(main())


def ordinary_array():
    """An array in pages of the usual size, as the Rust API's memory has them.

    NumPy's own memory of this size asks for huge pages, which are copied up to twice as fast.
    """
    import mmap

    import numpy

    memory = mmap.mmap(-1, BULK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    array = numpy.frombuffer(memory, dtype="u1")
    array[:] = 1
    return array


def serve_rma(transport):
    import cci

    with cci.sync.listen(transport) as server:
        print(server.uri, flush=True)
        connection = server.accept()
        with connection.register(ordinary_array()) as memory:
            connection.send(memory.handle)
            for _ in connection:
                pass


# The clients: microseconds of half a round trip, or bytes a second, of each block.


def blocks(seconds, one):
    taken, end = [], time.perf_counter() + seconds
    one()
    while time.perf_counter() < end:
        start = time.perf_counter()
        one()
        taken.append((time.perf_counter() - start) / BLOCK / 2 * 1e6)
    return taken


def call_sync(uri, seconds):
    import cci

    data = bytes(SIZE)
    with cci.sync.connect(uri) as connection:

        def one():
            for _ in range(BLOCK):
                connection.post(data)
                connection.recv()

        return blocks(seconds, one)


async def async_blocks(seconds, one):
    taken, end = [], time.perf_counter() + seconds
    await one()
    while time.perf_counter() < end:
        start = time.perf_counter()
        await one()
        taken.append((time.perf_counter() - start) / BLOCK / 2 * 1e6)
    return taken


def call_asyncio(uri, seconds, spin=0.0):
    import cci

    data = bytes(SIZE)

    async def main():
        async with cci.connect(uri, spin=spin) as connection:

            async def one():
                for _ in range(BLOCK):
                    connection.post(data)
                    await connection.recv()

            return await async_blocks(seconds, one)

    return asyncio.run(main())


class Call(asyncio.DatagramProtocol):
    answer = None

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.answer.set_result(data)


def call_udp(port, seconds):
    async def main():
        loop = asyncio.get_running_loop()
        transport, call = await loop.create_datagram_endpoint(Call, remote_addr=("127.0.0.1", int(port)))

        async def one():
            for _ in range(BLOCK):
                call.answer = loop.create_future()
                transport.sendto(bytes(SIZE))
                await call.answer

        taken = await async_blocks(seconds, one)
        transport.close()
        return taken

    return asyncio.run(main())


def call_zmq(port, seconds):
    import zmq.asyncio

    async def main():
        with zmq.asyncio.Context() as context, context.socket(zmq.PAIR) as socket:
            socket.connect(f"tcp://127.0.0.1:{port}")

            async def one():
                for _ in range(BLOCK):
                    await socket.send(bytes(SIZE))
                    await socket.recv()

            return await async_blocks(seconds, one)

    return asyncio.run(main())


def call_rma(uri, seconds):
    import cci

    rates, end = [], time.perf_counter() + seconds
    with cci.sync.connect(uri) as connection:
        handle = bytes(connection.recv())
        with connection.register(ordinary_array()) as memory:
            connection.write(memory, handle)
            while time.perf_counter() < end or len(rates) < 5:
                start = time.perf_counter()
                connection.write(memory, handle)
                rates.append(BULK / (time.perf_counter() - start))
    return rates


def measured(call, seconds, serve, *arguments):
    """The median of the blocks of a client, whose server is a process of its own."""
    command = [sys.executable, __file__, "--serve", serve, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        os.sched_setaffinity(0, PROCESSORS[-1:])
        try:
            return statistics.median(call(server.stdout.readline().strip(), seconds))
        finally:
            os.sched_setaffinity(0, PROCESSORS)
            server.kill()


def rust(cci, *arguments, key="median_ns"):
    """What the command measures of the Rust API, and of the bare machine beside it."""
    with tempfile.NamedTemporaryFile(suffix=".json") as document:
        command = [cci, "perf", *arguments, "--local", "--accuracy", "50%", "--json", document.name]
        # The command has devices of its own.
        alone = {name: value for name, value in os.environ.items() if name != "CCI_CONFIG"}
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=alone)
        row = json.load(document)["rows"][0]
        return row[key], row["probe_ns"]


def import_time():
    """What an import takes beyond a bare interpreter, ms: the least of 20."""
    bare, more = [], []
    for _ in range(20):
        for source, taken in (("pass", bare), ("import cci", more)):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", source], check=True)
            taken.append(time.perf_counter() - start)
    return (min(more) - min(bare)) * 1e3


def has_zmq():
    try:
        import zmq.asyncio  # noqa: F401
    except ImportError:
        print("pyzmq is not installed: not measured")
        return False
    return True


def subjects(cci, seconds):
    """What is measured, each by a call that returns its figures by name."""

    def half(name, transport, *more):
        time, bare = rust(cci, "pingpong", "--transport", transport, "--size", str(SIZE), *more)
        return {f"Rust {name}": time / 1e3, f"bare {name}": bare / 1e3}

    def bulk():
        words = ("oneway", "--transport", "sm", "--op", "write", "--size", str(BULK), "--memory", "any")
        return {"Rust RMA": BULK / rust(cci, *words)[0]}

    def python(name, call, *serve, times=1):
        return lambda: {name: measured(call, seconds / times, *serve)}

    yield lambda: half("sm", "sm")
    yield python("sync sm", call_sync, "sync", "sm")
    yield lambda: half("sock", "sock")
    yield python("sync sock", call_sync, "sync", "sock")
    yield python("spinning", lambda uri, s: call_asyncio(uri, s, 20e-6), "asyncio", "sock", 20e-6)
    yield lambda: half("asleep", "sock", "--mode", "blocking")
    with_zmq = has_zmq()
    for _ in range(SLEEPS):
        yield python("asleep", call_asyncio, "asyncio", "sock", 0, times=SLEEPS)
        yield python("asyncio UDP", call_udp, "udp", times=SLEEPS)
        yield python("asyncio pipe", call_pipe, "pipe", times=SLEEPS)
        if with_zmq:
            yield python("asyncio pyzmq", call_zmq, "zmq", times=SLEEPS)
    for _ in range(BULK_PAIRS):
        yield bulk
        yield lambda: {"RMA": measured(call_rma, seconds / BULK_PAIRS, "rma", "sm") / 1e9}


# What a row compares: ours, beside, and how often the latter ours may take; or how much longer, us.
RATIOS = (
    ("cci.sync over sock", "sync sock", "Rust sock", 1.35),
    ("asyncio that spins, over sock", "spinning", "Rust sock", 1.6),
    ("asyncio asleep, over sock", "asleep", "asyncio UDP", 1.15),
    # Of whatever sleeps in the loop for each message the bare one is the least.
    ("", "asleep", "asyncio pyzmq or UDP", 0.7),
)
SUMS = (
    ("cci.sync over sm", "sync sm", "Rust sm", 0.6),
    # The Rust API asleep looks for a while before it sleeps, which an event loop does not: beside
    # it stands a bare wake-up in such a loop.
    ("asyncio asleep, over sock", "asleep", "asyncio pipe", 12.0),
)
# Without a bar: what the rows above consist of.
PROBES = ("bare sock", "Rust asleep", "bare asleep", "asyncio pipe", "asyncio UDP", "asyncio pyzmq")


def row(what, value, unit, beside, bar, holds):
    verdict = "met" if holds else "MISSED"
    print(f"{what:30} {value:9.2f} {unit:4}  {beside:34} bar {bar:10} {verdict}", flush=True)


def main(cci, seconds):
    """Measures all subjects in turn, several times, and prints the rows of their medians."""
    # The Rust API is measured over the loop-back interface, which is faster than another one's own
    # address.
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as config:
        config.write("[sm]\ntransport = sm\n[lo]\ntransport = sock\ninterface = lo\n")
        config.flush()
        os.environ["CCI_CONFIG"] = config.name
        turns = [turn for turn in subjects(cci, seconds / ROUNDS)]
        figures = {}
        for _ in range(ROUNDS):
            for turn in turns:
                for name, value in turn().items():
                    figures.setdefault(name, []).append(value)
        del os.environ["CCI_CONFIG"]
    middle = {name: statistics.median(values) for name, values in figures.items()}
    if "asyncio pyzmq" in middle:
        # Threads of pyzmq may keep a processor awake whose wake-up costs more than they do.
        middle["asyncio pyzmq or UDP"] = max(middle["asyncio pyzmq"], middle["asyncio UDP"] * 1.15 / 0.7)
    for what, ours, beside, most in SUMS:
        ours, theirs = middle[ours], middle[beside]
        row(what, ours, "us", f"{beside} {theirs:.2f}: {ours - theirs:+.2f} us", f"{most:+.1f} us", ours <= theirs + most)
    for what, ours, beside, most in RATIOS:
        if beside in middle:
            ours, theirs = middle[ours], middle[beside]
            row(what, ours, "us", f"{beside} {theirs:.2f}: {ours / theirs:.2f}x", f"{most}x", ours <= most * theirs)
    ours, theirs = middle["RMA"], middle["Rust RMA"]
    row("RMA write of 64 MiB, sm", ours, "GB/s", f"Rust {theirs:.2f}: {ours / theirs:.2f}x", "0.95x", ours >= 0.95 * theirs)
    ours = import_time()
    row("import cci", ours, "ms", "beyond a bare interpreter", "15 ms", ours <= 15)
    print("probes:", ", ".join(f"{name} {middle[name]:.2f} us" for name in PROBES if name in middle))


SERVERS = {
    "sync": serve_sync,
    "asyncio": serve_asyncio,
    "udp": serve_udp,
    "pipe": serve_pipe,
    "zmq": serve_zmq,
    "rma": serve_rma,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        os.sched_setaffinity(0, PROCESSORS[:1])
        SERVERS[sys.argv[2]](*sys.argv[3:])
    elif len(sys.argv) in (2, 3):
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else 3.0)
    else:
        sys.exit(__doc__)
