"""A TCP proxy whose answers come late: slow_proxy.py PORT TO FILE.

FILE holds how many milliseconds every answer takes, and may hold after that a part of all and how many milliseconds
these take instead: "5", or "0 0.01 500". It is read for every piece. Order is kept, as on any connection. Used by
fleet_fault_load_long.sh; the tests in C++ have tests/fault_proxy.h.
"""
import asyncio, random, sys

port, to, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def delay():
    with open(file) as text:
        words = [float(word) for word in text.read().split()]
    slow = len(words) == 3 and random.random() < words[1]
    return (words[2] if slow else words[0]) / 1000

async def copy(reader, writer, is_late):
    loop, last = asyncio.get_running_loop(), 0.0
    try:
        while data := await reader.read(65536):
            if not is_late:
                writer.write(data)
                continue
            last = max(last, loop.time() + delay())
            loop.call_at(last, writer.write, data)
    except OSError:
        pass
    writer.close()

async def serve(reader, writer):
    try:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to)
    except OSError:
        return writer.close()
    await asyncio.gather(copy(reader, far_writer, False), copy(far_reader, writer, True))

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()

asyncio.run(main())
