"""The network between a worker and a PostgreSQL server, which a test may cut."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing


class Line:
    """`sent`: bytes that went to the server. The next `lost` answers of the server are lost, with the connection."""

    def __init__(self) -> None:
        self.sent = 0
        self.lost = 0


@asynccontextmanager
async def line_to(url: str) -> AsyncGenerator[tuple[str, Line]]:
    """The URL of the same database over a line that can be cut, and the line."""
    server, _, name = url.rpartition("/")
    host, _, port = server.rpartition("@")[2].rpartition("//")[2].rpartition(":")
    line, carriers = Line(), list[asyncio.Task[None]]()

    async def carry(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(host, int(port))

        async def ask() -> None:
            with closing(to_server):
                while data := await client.read(65536):
                    line.sent += len(data)
                    to_server.write(data)

        async def answer() -> None:
            with closing(to_client):
                while data := await from_server.read(65536):
                    if line.lost:
                        line.lost -= 1
                        return
                    to_client.write(data)

        carriers.extend(map(asyncio.create_task, (ask(), answer())))

    listening = await asyncio.start_server(carry, "127.0.0.1", 0)
    try:
        yield f"postgresql://127.0.0.1:{listening.sockets[0].getsockname()[1]}/{name}", line
    finally:
        listening.close()
        for task in carriers:
            task.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)
