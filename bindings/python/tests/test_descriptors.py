"""Descriptors: none is a standard one of the program, and none is inherited."""

import importlib.util

import pytest

# What a program begins with. It closes its standard descriptors, and has them again at its end.
BEGIN = """
import fcntl, os, subprocess, sys

inherited = {number for number in range(3, 1000)
             if os.path.exists(f"/proc/self/fd/{number}") and os.get_inheritable(number)}
copies = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 200) for number in range(3)]

def close_standard():
    for number in range(3):
        os.close(number)

def restore_standard():
    for number, copy in enumerate(copies):
        os.dup2(copy, number)

def check():
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            link = os.readlink(f"/proc/self/fd/{name}")
            inheritable = os.get_inheritable(number)
        except OSError:
            # That of the listing itself.
            continue
        assert number > 2 or not link.startswith(("socket:", "anon_inode:", "/memfd:")), (number, link)
        assert number < 3 or number in inherited or not inheritable, (number, link)

def executed():
    numbers = subprocess.run(["sh", "-c", "for f in /proc/$$/fd/*; do [ -L $f ] && echo ${f##*/}; done; true"],
                             close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    return set(map(int, numbers.split())) - {0, 1, 2} - inherited

import cci
"""


@pytest.mark.parametrize("when", ["closed", "closing"])
def test_no_descriptor_is_inherited_or_a_standard_one(program, address, when):
    one = program(
        BEGIN
        + f"""
        import threading
        if {when!r} == "closed":
            close_standard()
        with cci.sync.listen({address!r}) as server:
            ends = []
            accepting = threading.Thread(target=lambda: ends.append(server.accept(timeout=60)))
            accepting.start()
            with cci.sync.connect(server.uri, timeout=60) as client:
                accepting.join()
                check()
                if {when!r} == "closing":
                    assert not executed()
                    close_standard()
                for size in (0, 100, 1000):
                    client.post(bytes(size))
                    assert len(ends[0].recv(timeout=60)) == size
                try:
                    client.recv(timeout=0.01)
                except cci.TimedOut:
                    pass
                check()
        restore_standard()
        print("exchanged")
        """.replace("\n        ", "\n")
    )
    assert one.end() == "exchanged\n"


@pytest.mark.parametrize("kind", ["asyncio", "trio"])
def test_the_descriptors_of_event_loops_are_no_standard_ones(program, kind):
    if importlib.util.find_spec(kind) is None:
        pytest.skip(f"{kind} is not installed")
    run = "asyncio.run(main())" if kind == "asyncio" else "trio.run(main)"
    one = program(
        BEGIN
        + f"""
        import {kind}
        async def main():
            # The loop has its own descriptors already.
            close_standard()
            async with cci.listen() as server:
                async with await cci.connect(server.uri) as client:
                    accepted = await server.accept()
                    await client.send(b"x")
                    assert await accepted.recv() == b"x"
                    check()
            restore_standard()
        {run}
        print("exchanged")
        """.replace("\n        ", "\n")
    )
    assert one.end() == "exchanged\n"
