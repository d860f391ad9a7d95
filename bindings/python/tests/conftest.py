"""What the tests share: event loops, and programs that run by themselves."""

import asyncio
import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

# Seconds after which a wait has failed; nothing takes as long on a loaded machine.
LIMIT = 60


class AsyncioLoop:
    name = "asyncio"

    def __init__(self, factory=None):
        self._factory = factory

    def run(self, main):
        with asyncio.Runner(loop_factory=self._factory) as runner:
            return runner.run(asyncio.wait_for(main(), LIMIT))

    async def together(self, *mains):
        async with asyncio.TaskGroup() as group:
            for main in mains:
                group.create_task(main())

    async def turn(self):
        await asyncio.sleep(0)


class TrioLoop:
    name = "trio"

    def run(self, main):
        import trio

        async def limited():
            with trio.fail_after(LIMIT):
                return await main()

        return trio.run(limited)

    async def together(self, *mains):
        import trio

        async with trio.open_nursery() as nursery:
            for main in mains:
                nursery.start_soon(main)

    async def turn(self):
        import trio

        await trio.lowlevel.checkpoint()


def loops():
    yield pytest.param(AsyncioLoop(), id="asyncio")
    missing = [name for name in ("uvloop", "trio") if importlib.util.find_spec(name) is None]
    skip = pytest.mark.skip
    if "uvloop" in missing:
        yield pytest.param(None, id="uvloop", marks=skip(reason="uvloop is not installed"))
    else:
        import uvloop

        yield pytest.param(AsyncioLoop(uvloop.new_event_loop), id="uvloop")
    if "trio" in missing:
        yield pytest.param(None, id="trio", marks=skip(reason="trio is not installed"))
    else:
        yield pytest.param(TrioLoop(), id="trio")


@pytest.fixture(params=loops())
def loop(request):
    """An event loop, of each kind that is installed."""
    return request.param


# In development mode asyncio logs callbacks that took long, which a loaded machine makes of any.
SLOW = "import logging; logging.getLogger('asyncio').setLevel(logging.ERROR)\n"


class Program:
    """A Python program that must say nothing uninvited: in development mode, warnings as errors."""

    def __init__(self, source, *arguments, **options):
        source = textwrap.dedent(source)
        if "asyncio" in source:
            source = SLOW + source
        strict = [sys.executable, "-X", "dev", "-W", "error", "-c", source, *arguments]
        self.process = subprocess.Popen(
            strict,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(f"the program ended: {self.process.communicate(timeout=LIMIT)[1]}")
        return line.strip()

    def end(self):
        """Waits for a good end, and returns what it printed."""
        out, error = self.process.communicate(timeout=LIMIT)
        assert (self.process.returncode, error) == (0, "")
        return out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=LIMIT)


@pytest.fixture
def program():
    """Starts programs, and ends those that are left."""
    started = []

    def start(source, *arguments, **options):
        started.append(Program(source, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


@pytest.fixture(params=["sm", "sock", "tcp", ""])
def address(request):
    """Each transport between processes of one host, and the default device over them."""
    if "CCI_CONFIG" in os.environ:
        pytest.skip("CCI_CONFIG names other devices")
    return request.param or None


def pytest_terminal_summary(terminalreporter):
    """Counts as the test runners of Rust do, for `ci/test`."""
    stats = {name: len(reports) for name, reports in terminalreporter.stats.items()}
    failed = stats.get("failed", 0) + stats.get("error", 0)
    word = "FAILED" if failed else "ok"
    terminalreporter.write_line(
        f"test result: {word}. {stats.get('passed', 0)} passed; {failed} failed; "
        f"{stats.get('skipped', 0)} ignored; 0 measured; 0 filtered out"
    )
