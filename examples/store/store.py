"""A key-value store: a table that clients read by RMA; a put is a message.

    store.py                       serves; prints its URI
    store.py URI put KEY VALUE     sets a value
    store.py URI get KEY           prints a value

The same as store.c and store.rs beside it: their clients understand its server.
"""

import asyncio
import sys

import cci

SLOTS, KEY, SLOT = 4096, 24, 64


def place(key: bytes) -> int:
    """Where the slot of a key lies in the table."""
    number = 2166136261
    for byte in key:
        number = (number ^ byte) * 16777619 % 2**32
    return number % SLOTS * SLOT


def text(piece: bytes) -> bytes:
    """A text without the zeroes behind it."""
    return piece.split(b"\0")[0]


async def client_of(connection: cci.Connection, table: bytearray, handle: bytes) -> None:
    try:
        await connection.send(handle)
        async for message in connection:
            if len(message) == SLOT:
                slot = bytes(message)
                at = place(text(slot[: KEY - 1]))
                table[at : at + SLOT] = slot
                await connection.send(b"")
    except cci.Error as error:  # this client has gone; the others are served on
        print("a client got no answer:", error, file=sys.stderr)


async def serve() -> None:
    table = bytearray(SLOTS * SLOT)
    async with cci.listen() as server, asyncio.TaskGroup() as clients:
        with server.register(table, write=False) as memory:
            print(server.uri, flush=True)
            async for connection in server:
                clients.create_task(client_of(connection, table, memory.handle))


async def ask(uri: str, key: bytes, value: bytes | None) -> None:
    async with cci.connect(uri) as connection:
        handle = bytes(await connection.recv())
        if value is not None:
            slot = key[: KEY - 1].ljust(KEY, b"\0") + value[: SLOT - KEY - 1]
            await connection.send(slot.ljust(SLOT, b"\0"))
            await connection.recv()  # the table has it
            return
        slot = bytearray(SLOT)
        with connection.register(slot) as memory:
            await connection.read(memory, handle, offset=place(key))
        if text(slot[:KEY]) != key:
            sys.exit("no such key")
        print(text(slot[KEY:]).decode())


if __name__ == "__main__":
    match [word.encode() for word in sys.argv[2:]]:
        case []:
            asyncio.run(serve())
        case [b"put", key, value]:
            asyncio.run(ask(sys.argv[1], key, value))
        case [b"get", key]:
            asyncio.run(ask(sys.argv[1], key, None))
        case _:
            sys.exit("usage: store.py [URI put KEY VALUE | URI get KEY]")
