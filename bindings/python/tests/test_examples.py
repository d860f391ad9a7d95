"""The programs of the README and of the tutorial."""

import pathlib

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


def source(path):
    return (EXAMPLES / path).read_text()


def test_the_readme_shows_the_example():
    readme = (EXAMPLES.parent / "README.md").read_text()
    assert f"```python\n{source('first/hello.py')}```" in readme


def test_the_first_programs_say_hello(program):
    server = program(source("first/serve.py"))
    assert program(source("first/hello.py"), server.line()).end() == "hello\n"


def test_the_store_gets_what_was_put(program):
    store = source("store/store.py")
    uri = program(store).line()
    for value in "red", "green":
        assert program(store, uri, "put", "colour", value).end() == ""
    assert program(store, uri, "get", "colour").end() == "green\n"
    missing = program(store, uri, "get", "shape")
    assert missing.process.wait(60) == 1


LEAVES = """
import os, signal, sys
import cci

connection = cci.sync.connect(sys.argv[1])
bytes(connection.recv())
for _ in range(100):
    connection.post(b"colour".ljust(24, b"\\0") + b"green".ljust(40, b"\\0"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_store_outlives_clients_that_are_killed(program):
    store = source("store/store.py")
    uri = program(store).line()
    for _ in range(10):
        assert program(LEAVES, uri).process.wait(60) == -9
    assert program(store, uri, "put", "colour", "red").end() == ""
    assert program(store, uri, "get", "colour").end() == "red\n"
