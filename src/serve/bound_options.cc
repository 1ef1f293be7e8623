// The flags for bounds. See bound_options.h.
#include "serve/bound_options.h"

#include "cli/complain.h"

namespace weir {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kCountMax = 1'000'000;
constexpr std::uint64_t kSecondsMax = 86'400;

struct Within {
  std::uint64_t least, most;
};

// Declares one flag with its permitted range, in the help's group "Bounds".
template <class Number>
void bound(CLI::App& app, const std::string& name, Number& value, Within within, const std::string& unit,
           const std::string& help) {
  app.add_option(name, value, help)
      ->type_name(unit)
      ->check(whole_number_to(within.most, within.least))
      ->capture_default_str()
      ->group("Bounds");
}

}  // namespace

void BoundOptions::add(CLI::App& app) {
  bound(app, "--connections", connections, {1, kCountMax}, "N", "Maximum open connections of each listener");
  bound(app, "--buffers", buffers_mib, {1, 1'048'576}, "MIB",
        "Maximum memory for unfinished requests and unread answers");
  add_sizes(app);
  add_times(app);
  add_grpc(app);
  app.add_option("--on-overload", on_overload, "Answer of an overloaded server (see --shed-after): deny or allow")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"deny", "allow"}))
      ->capture_default_str()
      ->group("Bounds");
}

void BoundOptions::add_sizes(CLI::App& app) {
  bound(app, "--header-max", bounds.http.header_max, {256, kBytesMax}, "BYTES",
        "Maximum size of a request's header or gRPC metadata");
  bound(app, "--header-fields", bounds.http.fields_max, {1, 10'000}, "N", "Maximum header fields of a request");
  bound(app, "--body-max", bounds.body_max, {256, kBytesMax}, "BYTES",
        "Maximum size of an HTTP body, RESP bulk string or gRPC message");
  bound(app, "--key-max", bounds.key_max, {1, kKeyBytesMax}, "BYTES", "Maximum length of a key");
  bound(app, "--checks-max", bounds.checks_max, {1, kCountMax}, "N", "Maximum checks in one call of /v1/checks");
  bound(app, "--holds", bounds.holds_max, {1, kCountMax}, "N",
        "Maximum answers that a thread delays at once (leaky_bucket)");
  bound(app, "--resp-args", bounds.resp_args_max, {4, 1024}, "N", "Maximum arguments of a RESP command");
  bound(app, "--resp-line", bounds.resp_line_max, {64, kBytesMax}, "BYTES",
        "Maximum length of a line from a RESP client");
  bound(app, "--output-max", bounds.output_max, {4096, kBytesMax}, "BYTES", "Maximum unread answers of a connection");
}

void BoundOptions::add_times(CLI::App& app) {
  Patience& patience = bounds.patience;
  bound(app, "--idle-timeout", patience.idle, {0, kSecondsMax}, "S",
        "Close an HTTP connection after S idle seconds; 0: never");
  bound(app, "--header-timeout", patience.header, {1, kSecondsMax}, "S",
        "Maximum time from a request's first byte to the end of its header");
  bound(app, "--body-timeout", patience.body, {1, kSecondsMax}, "S",
        "Maximum time from the end of a request's header to the end of its body");
  bound(app, "--write-timeout", bounds.write_seconds, {1, kSecondsMax}, "S",
        "Close a connection whose client reads none of its answers for S seconds");
  bound(app, "--shed-after", shed_after_ms, {0, 60'000}, "MS",
        "A thread is overloaded when its event loop iterations stay above MS milliseconds; 0: never");
}

void BoundOptions::add_grpc(CLI::App& app) {
  GrpcBounds& grpc = bounds.grpc;
  bound(app, "--grpc-streams", grpc.calls_max, {1, 100'000}, "N", "Maximum concurrent calls of a gRPC connection");
  bound(app, "--grpc-resets", grpc.resets_per_second, {1, kCountMax}, "N",
        "Maximum calls that a gRPC connection may reset per second");
  bound(app, "--grpc-frames", grpc.frames_per_second, {1, kCountMax}, "N",
        "Maximum frames without a call, such as PING, per second of a gRPC connection");
}

Result<void> BoundOptions::fill(ServerOptions& options) const {
  options.connections_max = connections;
  options.buffers_max = buffers_mib << 20;
  options.bounds = bounds;
  options.bounds.shed_after = Micros{static_cast<std::int64_t>(shed_after_ms) * 1000};
  options.bounds.on_overload = on_overload == "allow" ? OnOverload::allow : OnOverload::deny;
  return {};
}

}  // namespace weir
