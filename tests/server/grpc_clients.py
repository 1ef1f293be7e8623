# An independent gRPC client, against a running server: python3 grpc_clients.py PORT PID stubs|reflection
#
# With `stubs` the messages are Envoy's own, generated (xds-protos), health and reflection those of their packages. With
# `reflection` the client knows nothing beforehand: it asks the server for its services, and makes its messages from the
# answer. Both then make the same calls, under the rules of grpc_talk.bash. Each check prints a line, as in lib.bash.
import glob
import os
import signal
import sys
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

RLS = "envoy.service.ratelimit.v3.RateLimitService"
HEALTH = "grpc.health.v1.Health"
failures = 0


def check(name, expected, got):
    global failures
    if expected == got:
        print(f"ok    {name}")
        return
    failures += 1
    print(f"FAIL  {name}\n      expected: {expected}\n      got:      {got}")


def code_of(call):
    try:
        call()
        return "OK"
    except grpc.RpcError as error:
        return error.code().name


# A signal takes its time where processors are busy.
def stop(pid):
    def states():
        for status in glob.glob(f"/proc/{pid}/task/*/status"):
            with open(status) as lines:
                yield next(line.split()[1] for line in lines if line.startswith("State:"))

    os.kill(pid, signal.SIGSTOP)
    while set(states()) - {"T"}:
        time.sleep(0.001)


class Stubs:
    """Messages and services as their authors generated them."""

    def __init__(self, channel):
        from envoy.service.ratelimit.v3 import rls_pb2
        from grpc_health.v1 import health_pb2
        from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

        self.Request, self.Response = rls_pb2.RateLimitRequest, rls_pb2.RateLimitResponse
        self.HealthRequest, self.HealthResponse = health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse
        self.database = ProtoReflectionDescriptorDatabase(channel)

    def services(self):
        return sorted(self.database.get_services())

    def methods(self, service):
        described = descriptor_pool.DescriptorPool(self.database).FindServiceByName(service)
        return [method.name for method in described.methods]


class Reflection:
    """Messages and services as the server describes them; of reflection itself, only what is needed to ask."""

    def __init__(self, channel):
        self.pool = descriptor_pool.DescriptorPool()
        self.pool.Add(self.reflection_file())
        self.Ask, self.Told = self.message("weirtest.Ask"), self.message("weirtest.Told")
        self.stream = channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            request_serializer=self.Ask.SerializeToString, response_deserializer=self.Told.FromString)
        self.have = set()
        for service in (RLS, HEALTH):
            self.learn(self.Ask(file_containing_symbol=service))
        self.Request = self.message("envoy.service.ratelimit.v3.RateLimitRequest")
        self.Response = self.message("envoy.service.ratelimit.v3.RateLimitResponse")
        self.HealthRequest = self.message("grpc.health.v1.HealthCheckRequest")
        self.HealthResponse = self.message("grpc.health.v1.HealthCheckResponse")

    @staticmethod
    def reflection_file():
        kind = descriptor_pb2.FieldDescriptorProto
        file = descriptor_pb2.FileDescriptorProto(name="weirtest.proto", package="weirtest", syntax="proto3")
        for name, fields in {
            "Ask": [("file_by_filename", 3, 1, kind.TYPE_STRING, ""), ("file_containing_symbol", 4, 1, kind.TYPE_STRING, ""),
                    ("list_services", 7, 1, kind.TYPE_STRING, "")],
            "Files": [("file", 1, 3, kind.TYPE_BYTES, "")],
            "Service": [("name", 1, 1, kind.TYPE_STRING, "")],
            "Services": [("service", 1, 3, kind.TYPE_MESSAGE, ".weirtest.Service")],
            "Told": [("files", 4, 1, kind.TYPE_MESSAGE, ".weirtest.Files"),
                     ("services", 6, 1, kind.TYPE_MESSAGE, ".weirtest.Services")],
        }.items():
            message = file.message_type.add(name=name)
            for field, number, label, of, type_name in fields:
                message.field.add(name=field, number=number, label=label, type=of, type_name=type_name or None)
        return file

    def message(self, name):
        described = self.pool.FindMessageTypeByName(name)
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(described)
        return message_factory.MessageFactory(self.pool).GetPrototype(described)

    def ask(self, *questions):
        return list(self.stream(iter(questions), timeout=60))

    # Takes in a file behind all that it imports, which the server may send along or be asked for.
    def learn(self, question):
        files = [descriptor_pb2.FileDescriptorProto.FromString(file) for told in self.ask(question) for file in told.files.file]
        sent = {file.name: file for file in files}

        def add(file):
            if file.name in self.have:
                return
            self.have.add(file.name)
            for name in file.dependency:
                if name in sent:
                    add(sent[name])
                elif name not in self.have:
                    self.learn(self.Ask(file_by_filename=name))
            self.pool.Add(file)

        for file in files:
            add(file)

    def services(self):
        return sorted(service.name for service in self.ask(self.Ask(list_services="*"))[0].services.service)

    def methods(self, service):
        return [method.name for method in self.pool.FindServiceByName(service).methods]


class Talk:
    def __init__(self, port, pid, of):
        self.pid = pid
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.api = of(self.channel)
        self.should = self.channel.unary_unary(
            f"/{RLS}/ShouldRateLimit", request_serializer=self.api.Request.SerializeToString,
            response_deserializer=self.api.Response.FromString)

    # descriptors: ({entry: value}, {field of the descriptor: value}) each.
    def request(self, *descriptors, domain="web", hits=0):
        request = self.api.Request(domain=domain, hits_addend=hits)
        for entries, fields in descriptors:
            descriptor = request.descriptors.add()
            for key, value in entries.items():
                descriptor.entries.add(key=key, value=value)
            if "hits" in fields:
                descriptor.hits_addend.value = fields["hits"]
                descriptor.hits_addend.SetInParent()
            if "limit" in fields:
                descriptor.limit.requests_per_unit, descriptor.limit.unit = fields["limit"]
            if "back" in fields:
                descriptor.is_negative_hits = True
        return request

    def ask(self, *descriptors, **more):
        return self.should(self.request(*descriptors, **more), timeout=60)

    # What the tests look at: the whole's code, then code and remaining of each.
    def said(self, *descriptors, **more):
        answer = self.ask(*descriptors, **more)
        return [answer.overall_code] + [(s.code, s.limit_remaining) for s in answer.statuses]


def user(name, **fields):
    return {"user": name}, fields


def counts(talk):
    answer = talk.ask(user("a"))
    status = answer.statuses[0]
    check("a first answer", (1, 1, 3, 6, 2), (answer.overall_code, status.code, status.current_limit.requests_per_unit,
                                             status.current_limit.unit, status.limit_remaining))
    check("the rule is named", "per-user: 3/year", status.current_limit.name)
    check("the reset is within the year", True, 1 <= status.duration_until_reset.seconds <= 31536000)
    headers = {header.key.lower(): header.value for header in answer.response_headers_to_add}
    check("RateLimit is told", True, ";r=2;t=" in headers.get("ratelimit", ""))
    check("no Retry-After on what passes", False, "retry-after" in headers)
    check("down to nothing", [[1, (1, 1)], [1, (1, 0)], [2, (2, 0)]], [talk.said(user("a")) for _ in range(3)])
    answer = talk.ask(user("a"))
    headers = {header.key.lower(): header.value for header in answer.response_headers_to_add}
    check("Retry-After on a denial", True, 1 <= int(headers.get("retry-after", 0)) <= 31536000)
    check("the body tells it", True, b"Rate limit exceeded" in answer.raw_body)
    check("another user has a limit of its own", [1, (1, 2)], talk.said(user("b")))


def statuses(talk):
    answer = talk.ask(user("c"), ({"nobody": "knows"}, {}), ({"plan": "gold"}, {}), user("a"))
    check("a status for each, in order", [1, 1, 1, 2], [status.code for status in answer.statuses])
    check("no limit for what no rule is about", [True, False, True, True],
          [status.HasField("current_limit") for status in answer.statuses])
    check("one is over, so all is", 2, answer.overall_code)
    check("another domain is another world", [1, (1, 0)], talk.said(user("a"), domain="elsewhere"))


def hits(talk):
    check("hits of the request", [1, (1, 1)], talk.said(user("d"), hits=2))
    check("of a descriptor, which goes first", [1, (1, 0)], talk.said(user("d", hits=1), hits=2))
    check("more than there is", [2, (2, 3)], talk.said(user("e", hits=4)))
    check("none: a look", [[1, (1, 3)]] * 2, [talk.said(user("f", hits=0)) for _ in range(2)])
    check("a look at what is spent", 2, talk.said(user("d", hits=0))[0])
    answer = talk.ask(user("g", limit=(10, 3)))
    limit = answer.statuses[0].current_limit
    check("a limit of the request's own", (10, 3, 9), (limit.requests_per_unit, limit.unit,
                                                       answer.statuses[0].limit_remaining))
    if "is_negative_hits" in talk.api.Request.DESCRIPTOR.fields_by_name["descriptors"].message_type.fields_by_name:
        talk.said(user("h", hits=3))
        check("given back", 1, talk.said(user("h", hits=2, back=True))[0])
        check("and there again", [1, (1, 1)], talk.said(user("h")))


def together(talk):
    calls = [talk.should.future(talk.request(({"crowd": "x"}, {})), timeout=60) for _ in range(1000)]
    codes = [call.result().overall_code for call in calls]
    check("a thousand at once: exactly 400 pass", (400, 600), (codes.count(1), codes.count(2)))


def errors(talk):
    raw = talk.channel.unary_unary(f"/{RLS}/ShouldRateLimit")
    # As the reference server has it.
    check("no domain", "UNKNOWN", code_of(lambda: talk.ask(user("a"), domain="")))
    check("no descriptors", "UNKNOWN", code_of(lambda: talk.ask()))
    check("no message of that kind", "INTERNAL", code_of(lambda: raw(b"\xff\xff\xff", timeout=60)))
    check("a message that is too long", "RESOURCE_EXHAUSTED", code_of(lambda: raw(b"\n" * 8_000_000, timeout=60)))
    for method in (f"/{RLS}/Nothing", "/no.such.Service/Nothing"):
        check(f"{method} is not there", "UNIMPLEMENTED",
              code_of(lambda: talk.channel.unary_unary(method)(b"", timeout=60)))
    stop(talk.pid)
    check("a server that does not answer", "DEADLINE_EXCEEDED",
          code_of(lambda: talk.should(talk.request(user("z")), timeout=0.1)))
    os.kill(talk.pid, signal.SIGCONT)
    check("a client that compresses", True, code_of(lambda: talk.should(
        talk.request(user("y" * 1000)), timeout=60, compression=grpc.Compression.Gzip)) in ("OK", "UNIMPLEMENTED"))
    many = [(f"x-some-{n}", "v" * 50) for n in range(60)]
    check("many headers", "OK", code_of(lambda: talk.should(talk.request(user("z")), timeout=60, metadata=many)))
    calls = [talk.should.future(talk.request(user("z")), timeout=60) for _ in range(50)]
    for call in calls:
        call.cancel()
    check("and after all that, it answers", [1, (1, 2)], talk.said(user("after")))


def health(talk):
    ask, watch = ((talk.channel.unary_unary, "Check"), (talk.channel.unary_stream, "Watch"))
    ask, watch = (make(f"/{HEALTH}/{name}", request_serializer=talk.api.HealthRequest.SerializeToString,
                       response_deserializer=talk.api.HealthResponse.FromString) for make, name in (ask, watch))
    for service in ("", RLS):
        check(f"health of '{service}'", 1, ask(talk.api.HealthRequest(service=service), timeout=60).status)
    check("health of an unknown service", "NOT_FOUND", code_of(lambda: ask(talk.api.HealthRequest(service="no"), timeout=60)))
    seen = watch(talk.api.HealthRequest(service=""), timeout=10)
    check("health, watched", 1, next(seen).status)
    stranger = watch(talk.api.HealthRequest(service="no"), timeout=10)
    check("an unknown service, watched", 3, next(stranger).status)
    seen.cancel()
    stranger.cancel()


def reflection(talk):
    services = talk.api.services()
    check("the services are listed", [True] * 2, [name in services for name in (RLS, HEALTH)])
    check("and so is reflection itself", True, any(name.startswith("grpc.reflection.v1") for name in services))
    check("the methods of one", ["ShouldRateLimit"], talk.api.methods(RLS))
    check("the methods of health", True, {"Check", "Watch"} <= set(talk.api.methods(HEALTH)))


def main():
    # A watchdog: whatever hangs, hangs for ten minutes at most.
    watchdog = threading.Timer(600, lambda: (print("FAIL  the talk hangs", flush=True), os._exit(1)))
    watchdog.daemon = True
    watchdog.start()
    talk = Talk(int(sys.argv[1]), int(sys.argv[2]), {"stubs": Stubs, "reflection": Reflection}[sys.argv[3]])
    for part in (reflection, counts, statuses, hits, together, errors, health):
        try:
            part(talk)
        except Exception as error:  # one part that breaks does not hide the others
            check(part.__name__, "no exception", repr(error)[:500])
    sys.stdout.flush()
    os._exit(1 if failures else 0)


main()
