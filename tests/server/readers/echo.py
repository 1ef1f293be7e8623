# The application behind a gateway: it answers with the request target that reached it, in hex, as it was written.
# Prints its port, then serves until it is ended.
import asyncio


async def serve(reader, writer):
    try:
        while line := await reader.readline():
            target = line.split(b" ", 1)[1].rsplit(b" ", 1)[0]
            while (await reader.readline()).strip():
                pass
            body = target.hex().encode()
            writer.write(b"HTTP/1.1 200 OK\r\nX-Echo: yes\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (ConnectionError, IndexError, asyncio.LimitOverrunError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
