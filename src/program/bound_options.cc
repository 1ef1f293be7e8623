// The flags for bounds. See bound_options.h.
#include "program/bound_options.h"

#include "command/complain.h"

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
  bound(app, "--connections", connections, {1, kCountMax}, "N", "Connections that each port may have open");
  bound(app, "--buffers", buffers_mib, {1, 1'048'576}, "MIB", "Unfinished requests and unread answers, in all");
  add_sizes(app);
  add_times(app);
  add_grpc(app);
  app.add_option("--on-overload", on_overload, "What is answered when there is no time to decide: deny or allow")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"deny", "allow"}))
      ->capture_default_str()
      ->group("Bounds");
}

void BoundOptions::add_sizes(CLI::App& app) {
  bound(app, "--header-max", bounds.http.header_max, {256, kBytesMax}, "BYTES", "Header or metadata of a request");
  bound(app, "--header-fields", bounds.http.fields_max, {1, 10'000}, "N", "Header fields of a request");
  bound(app, "--body-max", bounds.body_max, {256, kBytesMax}, "BYTES", "Body, RESP bulk or gRPC message");
  bound(app, "--key-max", bounds.key_max, {1, kKeyBytesMax}, "BYTES", "Key that a client names");
  bound(app, "--checks-max", bounds.checks_max, {1, kCountMax}, "N", "Checks in one call of /v1/checks");
  bound(app, "--holds", bounds.holds_max, {1, kCountMax}, "N", "Answers that a thread holds back at once");
  bound(app, "--resp-args", bounds.resp_args_max, {4, 1024}, "N", "Arguments of a Redis command");
  bound(app, "--resp-line", bounds.resp_line_max, {64, kBytesMax}, "BYTES", "Line of a Redis client");
  bound(app, "--output-max", bounds.output_max, {4096, kBytesMax}, "BYTES", "Unread answers of a connection");
}

void BoundOptions::add_times(CLI::App& app) {
  Patience& patience = bounds.patience;
  bound(app, "--idle-timeout", patience.idle, {0, kSecondsMax}, "S", "Idle HTTP connection; 0 is for ever");
  bound(app, "--header-timeout", patience.header, {1, kSecondsMax}, "S", "From a request's first byte to its header");
  bound(app, "--body-timeout", patience.body, {1, kSecondsMax}, "S", "From a request's header to its end");
  bound(app, "--write-timeout", bounds.write_seconds, {1, kSecondsMax}, "S", "A client that reads none of its answers");
  bound(app, "--shed-after", shed_after_ms, {0, 60'000}, "MS",
        "A thread that needs longer for each round answers --on-overload; 0 is never");
}

void BoundOptions::add_grpc(CLI::App& app) {
  GrpcBounds& grpc = bounds.grpc;
  bound(app, "--grpc-streams", grpc.calls_max, {1, 100'000}, "N", "Calls of a gRPC connection at once");
  bound(app, "--grpc-resets", grpc.resets_per_second, {1, kCountMax}, "N", "Calls that it may reset, a second");
  bound(app, "--grpc-frames", grpc.frames_per_second, {1, kCountMax}, "N", "Its frames that ask nothing, a second");
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
