"""Programs of users who have a secret, over a network: members of a group, and strangers."""

import os

import pytest

SERVER = """
    import cci, sys
    with cci.sync.listen(sys.argv[1]) as server:
        print(server.uri, flush=True)
        connection = server.accept(timeout=60)
        connection.send(connection.recv(timeout=60), timeout=60)
        try:
            connection.recv(timeout=60)
        except cci.Disconnected:
            print("served")
"""

MEMBER = """
    import cci, sys
    with cci.sync.connect(sys.argv[1], timeout=60) as connection:
        connection.send(bytes(100_000), timeout=60)
        assert connection.recv(timeout=60) == bytes(100_000)
"""

STRANGER = """
    import cci, sys
    try:
        cci.sync.connect(sys.argv[1], timeout=1)
    except cci.Error as why:
        print(why)
    else:
        raise AssertionError("connected")
"""


@pytest.fixture
def variables(tmp_path):
    """The environment of a user who has that secret, named or in the own file; or who has none."""

    def of(digits, is_named):
        home = tmp_path / f"{digits or 'nobody'}-{is_named}"
        (home / "cci").mkdir(parents=True)
        path = home / "cci" / ("named" if is_named else "secret")
        if digits:
            path.touch(0o600)
            path.write_text(digits * 32)
        # An empty variable counts as unset.
        file = str(path) if is_named else ""
        return {**os.environ, "XDG_CONFIG_HOME": str(home), "CCI_SECRET_FILE": file}

    return of


@pytest.mark.parametrize("transport", ["sock", "tcp"])
def test_members_of_a_group_are_sealed_and_strangers_refused(program, variables, transport):
    if "CCI_CONFIG" in os.environ:
        pytest.skip("CCI_CONFIG names other devices")
    server = program(SERVER, transport, env=variables("5e", True))
    uri = server.line()
    for stranger in (variables("07", True), variables("", False)):
        why = program(STRANGER, uri, env=stranger).end()
        assert "secret" in why and why.count("\n") == 1, why
    program(MEMBER, uri, env=variables("5e", False)).end()
    assert server.end() == "served\n"
