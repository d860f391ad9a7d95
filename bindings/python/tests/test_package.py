"""The package as a whole: stubs, docstrings, what an import loads, the listings of the page."""

import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import cci

LIMIT = 120
HERE = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = pathlib.Path(cci.__file__).parent
PAGE = HERE.parent.parent / "docs" / "python.md"

needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where mypy keeps what it has read."""
    return tmp_path_factory.mktemp("cache")


def tool(cache, *arguments):
    places = {"MYPY_CACHE_DIR": str(cache), "MYPYPATH": str(PACKAGE.parent)}
    ran = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env={**os.environ, **places},
        cwd=HERE,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_mypy
def test_the_package_is_typed(cache):
    tool(cache, "mypy", "--strict", str(PACKAGE))


@needs_mypy
def test_the_stubs_are_those_of_the_module(cache, tmp_path):
    # A method of its own from Python 3.12 on.
    allowed = tmp_path / "allowed"
    allowed.write_text("cci._cci.Message.__buffer__\n")
    tool(cache, "mypy.stubtest", "cci", "--allowlist", str(allowed), "--ignore-unused-allowlist")


@needs_mypy
def test_a_typed_program_is_checked_against_the_stubs(cache, tmp_path):
    good = tmp_path / "good.py"
    good.write_text(
        "import cci\n"
        "async def main() -> bytes:\n"
        "    async with cci.listen() as server, cci.connect(server.uri) as c:\n"
        "        await c.send(bytearray(3))\n"
        "        async for connection in server:\n"
        "            async for message in connection:\n"
        "                view: memoryview = memoryview(message)\n"
        "        return bytes(await c.recv(timeout=1.0))\n"
    )
    tool(cache, "mypy", "--strict", str(good))
    bad = tmp_path / "bad.py"
    bad.write_text("import cci\nasync def main(c: cci.Connection) -> None:\n    await c.send('text')\n")
    with pytest.raises(AssertionError, match='incompatible type "str"'):
        tool(cache, "mypy", "--strict", str(bad))


def test_every_public_name_has_a_docstring():
    modules = {"cci": cci, "cci.sync": cci.sync}
    missing = [name for name, module in modules.items() if not inspect.getdoc(module)]
    count = 0
    for name, module in modules.items():
        for public in module.__all__:
            value = getattr(module, public)
            if isinstance(value, str) or inspect.ismodule(value):
                continue
            members = [(f"{name}.{public}", value)]
            if inspect.isclass(value):
                members += [
                    (f"{name}.{public}.{member}", item)
                    for member, item in vars(value).items()
                    if not member.startswith("_") and (callable(item) or inspect.isdatadescriptor(item))
                ]
            count += len(members)
            missing += [what for what, item in members if not inspect.getdoc(item)]
    assert missing == [] and count > 80


def loaded(source):
    """The modules that a program has loaded."""
    shown = f"import sys; {source}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-I", "-c", shown], capture_output=True, text=True, timeout=LIMIT)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def test_an_import_loads_no_event_loop():
    path = f"sys.path.insert(0, {str(PACKAGE.parent)!r})"
    more = loaded(f"{path}; import cci") - loaded(path)
    assert more == {"cci", "cci._cci", "cci._errors"}
    assert "asyncio" not in loaded(f"{path}; import cci; cci.sync.listen().close()")
    assert "trio" not in loaded(f"{path}; import cci; cci.listen")


def test_names_that_are_not_there_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'cci' has no attribute 'nothing'"):
        _ = cci.nothing
    assert set(cci.__all__) <= set(dir(cci))


def test_the_version_is_that_of_the_project():
    manifest = (HERE.parent.parent / "Cargo.toml").read_text()
    assert f'\nversion = "{cci.__version__}"\n' in manifest


def listings():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(program, number, *arguments, **options):
    return program(listings()[number], *arguments, **options)


@pytest.mark.parametrize("number", [0, 1], ids=["awaited", "synchronous"])
def test_the_first_listings_run_between_two_processes(program, number):
    server = run(program, number)
    client = run(program, number, server.line())
    if number == 0:
        assert client.end() == "hello\n"
        assert server.end() == ""
    else:
        assert server.line() == "hello"
        # The server ends without an answer.
        client.process.wait(LIMIT)


@pytest.mark.parametrize("number, printed", [(2, "0\n"), (3, "hello\n")], ids=["rma", "events"])
def test_the_other_listings_run(program, number, printed):
    assert run(program, number).end() == printed


def test_the_page_has_no_listing_that_is_not_tested():
    assert len(listings()) == 5 and "cci.job()" in listings()[4]
