# redis-py against the RESP port: redis_py.py PORT [PASSWORD]
#
# Prints one line a fact, which redis_clients.sh compares.
import sys

import redis

port, password = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None


def words(reply):
    """A map is a flat array to a client of RESP2."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {key.decode(): value for key, value in pairs}


def failure(call):
    try:
        return "none: %r" % (call(),)
    except redis.RedisError as error:
        return "%s: %s" % (type(error).__name__, error)


if password is not None:
    print("without a password:", failure(lambda: redis.Redis(port=port).ping()))
    print("with a wrong one:", failure(lambda: redis.Redis(port=port, password="no").ping()))
client = redis.Redis(port=port, password=password, client_name="redis-py", db=0)
print("ping:", client.ping())
print("name:", client.client_getname())
print("role:", client.info()["role"])
print("throttle:", client.execute_command("CL.THROTTLE", "redis-py", 1, 30, 6000))
print("error:", failure(lambda: client.execute_command("CL.THROTTLE", "redis-py", "x", 30, 6000)))
limit = words(client.execute_command("WEIR.LIMIT", "redis-py:limit", "3/day", "ALGORITHM", "sliding_log"))
print("limit:", limit["allowed"], limit["limit"], limit["remaining"])
rule = words(client.execute_command("WEIR.CHECK", "user", "redis-py", "path", "/a"))
print("rule:", rule["allowed"], rule["rule"].decode(), rule["remaining"])
pipeline = client.pipeline(transaction=False)
for i in range(1000):
    pipeline.execute_command("THROTTLE", "redis-py:%d" % (i % 500), 1, 1, 6000)
    pipeline.echo("%d" % i)
replies = pipeline.execute()
print("pipeline of 2000:", sum(reply[0] for reply in replies[::2]), "allowed,",
      replies[1::2] == [b"%d" % i for i in range(1000)])
transaction = client.pipeline()  # the default: MULTI ... EXEC
for i in range(3):
    transaction.execute_command("THROTTLE", "redis-py:transaction", 2, 1, 6000)
print("transaction:", [reply[0] for reply in transaction.execute()])
transaction.execute_command("THROTTLE", "redis-py:spoiled", 2, 1, 6000)
transaction.get("redis-py:spoiled")
spoiled = failure(transaction.execute).replace("Command # 2 (GET redis-py:spoiled) of pipeline caused error: ", "")
print("spoiled:", spoiled.split(",")[0], client.delete("redis-py:spoiled"))
with client.pipeline() as watched:
    watched.watch("redis-py:transaction")
    watched.multi()
    watched.ping()
    print("watched:", watched.execute())
print("deleted:", client.delete("redis-py:0", "redis-py:1", "redis-py:none"))
print("keys of a command:", client.execute_command("COMMAND GETKEYS", "GCRA", "k", 1, 1, 1))
