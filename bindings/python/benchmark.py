"""Measures the package beside the Rust API, a bare event loop and pyzmq, in one run.

    python benchmark.py CCI [SECONDS]

CCI is the command `cci`, which measures the Rust API. Each row has its bar (docs/design/python.md).
A machine that does other work meanwhile spoils the figures; the ratios of one run less so.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SIZE = 8
BLOCK = 50
BULK = 64 << 20


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


def serve_zmq():
    import zmq.asyncio

    async def main():
        with zmq.asyncio.Context() as context, context.socket(zmq.PAIR) as socket:
            print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
            while True:
                await socket.send(await socket.recv())

    asyncio.run(main())


def serve_rma(transport):
    import cci
    import numpy

    with cci.sync.listen(transport) as server:
        print(server.uri, flush=True)
        connection = server.accept()
        with connection.register(numpy.zeros(BULK, dtype="u1")) as memory:
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
    import numpy

    rates, end = [], time.perf_counter() + seconds
    with cci.sync.connect(uri) as connection:
        handle = bytes(connection.recv())
        with connection.register(numpy.ones(BULK, dtype="u1")) as memory:
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
    """What the command measures of the Rust API."""
    with tempfile.NamedTemporaryFile(suffix=".json") as document:
        command = [cci, "perf", *arguments, "--local", "--accuracy", "50%", "--json", document.name]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.load(document)["rows"][0][key]


def import_time():
    """What an import takes beyond a bare interpreter, ms: the least of 20."""
    bare, more = [], []
    for _ in range(20):
        for source, taken in (("pass", bare), ("import cci", more)):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", source], check=True)
            taken.append(time.perf_counter() - start)
    return (min(more) - min(bare)) * 1e3


def row(what, value, unit, beside, bar, holds):
    verdict = "met" if holds else "MISSED"
    print(f"{what:34} {value:9.2f} {unit:4}  {beside:34} bar {bar:18} {verdict}", flush=True)


def main(cci, seconds):
    polled = {}
    for transport in ("sm", "sock"):
        polled[transport] = rust(cci, "pingpong", "--transport", transport, "--size", str(SIZE)) / 1e3
        ours = measured(call_sync, seconds, "sync", transport)
        theirs = polled[transport]
        holds = ours <= theirs + 0.6 if transport == "sm" else ours <= 1.35 * theirs
        bar = "Rust + 0.6 us" if transport == "sm" else "1.35x"
        row(f"cci.sync over {transport}", ours, "us", f"Rust {theirs:.2f}: {ours / theirs:.2f}x", bar, holds)
    theirs = polled["sock"]
    ours = measured(lambda uri, s: call_asyncio(uri, s, 20e-6), seconds, "asyncio", "sock", 20e-6)
    row("asyncio that spins, sock", ours, "us", f"polled Rust {theirs:.2f}: {ours / theirs:.2f}x", "1.6x", ours <= 1.6 * theirs)
    ours = measured(call_asyncio, seconds, "asyncio", "sock", 0)
    theirs = rust(cci, "pingpong", "--transport", "sock", "--size", str(SIZE), "--mode", "blocking") / 1e3
    row("asyncio asleep, sock", ours, "us", f"blocking Rust {theirs:.2f}", "Rust + 12 us", ours <= theirs + 12)
    theirs = measured(call_udp, seconds, "udp")
    row("", ours, "us", f"bare asyncio {theirs:.2f}: {ours / theirs:.2f}x", "1.15x", ours <= 1.15 * theirs)
    try:
        import zmq.asyncio  # noqa: F401
    except ImportError:
        print("pyzmq is not installed: not measured")
    else:
        theirs = measured(call_zmq, seconds, "zmq")
        row("", ours, "us", f"pyzmq asyncio {theirs:.2f}: {ours / theirs:.2f}x", "0.7x", ours <= 0.7 * theirs)
    bulk = ("bw", "--transport", "sm", "--op", "write", "--size", str(BULK), "--memory", "any")
    ours = measured(call_rma, seconds, "rma", "sm") / 1e9
    theirs = rust(cci, *bulk, key="bytes_per_second") / 1e9
    row("RMA write of 64 MiB of NumPy, sm", ours, "GB/s", f"Rust {theirs:.2f}: {ours / theirs:.2f}x", "0.95x", ours >= 0.95 * theirs)
    ours = import_time()
    row("import cci", ours, "ms", "beyond a bare interpreter", "15 ms", ours <= 15)


SERVERS = {"sync": serve_sync, "asyncio": serve_asyncio, "udp": serve_udp, "zmq": serve_zmq, "rma": serve_rma}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        os.sched_setaffinity(0, PROCESSORS[:1])
        SERVERS[sys.argv[2]](*sys.argv[3:])
    elif len(sys.argv) in (2, 3):
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else 3.0)
    else:
        sys.exit(__doc__)
