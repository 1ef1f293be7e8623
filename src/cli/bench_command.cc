// `weir bench`: puts a server under load and reports the result.
//
// It speaks RESP, HTTP and gRPC, so it also measures other servers. Exit codes: 0 success, 1 failure or only error
// answers, 2 invalid command line. One thread beside those that generate load. Tested by tests/server/load.sh.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "load_generator/load.h"

namespace weir::cli {
namespace {

constexpr const char* kCommand = "CL.THROTTLE {key} 1000000 3000000 60 1";
constexpr const char* kCheck = "{\"key\":\"{key}\",\"limit\":\"50000/second burst 1000000\"}";
constexpr std::size_t kRespDepth = 50, kHttpDepth = 1, kGrpcDepth = 32;
constexpr std::uint64_t kBatchMax = 10'000;

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
}

class BenchCommand {
 public:
  explicit BenchCommand(CLI::App& app);

  Result<int> run();

 private:
  Result<void> prepare();
  Result<void> prepare_resp();
  Result<void> prepare_http();
  Result<void> prepare_grpc();

  std::string resp_, http_, grpc_;
  std::uint64_t pipeline_ = 0, streams_ = 0;  // 0: the protocol's default
  double seconds_ = 5, warmup_ = 0.2;
  std::string command_, path_, method_, body_, domain_;
  std::vector<std::string> headers_, entries_;
  std::uint64_t batch_ = 0;
  bool is_json_ = false;

  load_generator::Options options_;
  load_generator::Template request_;
  load_generator::GrpcTemplate call_;
};

BenchCommand::BenchCommand(CLI::App& app) {
  CLI::Option_group* targets = app.add_option_group("Target", "Server to test");
  text_flag(*targets, "--resp", resp_, "ADDR", "RESP server: Weir or Redis");
  text_flag(*targets, "--http", http_, "ADDR", "HTTP/1.1 server");
  text_flag(*targets, "--grpc", grpc_, "ADDR", "Envoy rate limit service over gRPC, without TLS");
  targets->require_option(1);

  const auto flag = [&app](const char* name, auto& value, auto least, auto most, const char* type, const char* about) {
    using Number = std::remove_reference_t<decltype(value)>;
    return app.add_option(name, value, about)
        ->type_name(type)
        ->check(CLI::Range(static_cast<Number>(least), static_cast<Number>(most)));
  };
  flag("--connections", options_.connections, 1, load_generator::kConnectionsMax, "N", "Number of connections")
      ->capture_default_str();
  flag("--pipeline", pipeline_, 1, load_generator::kDepthMax, "N",
       "Requests in flight on each connection; default: 50 with RESP, 1 with HTTP");
  flag("--streams", streams_, 1, load_generator::kDepthMax, "N",
       "gRPC calls in flight on each connection; default: 32");
  flag("--seconds", seconds_, 0.01, 86'400, "S", "Measured time in seconds")->capture_default_str();
  flag("--warmup", warmup_, 0, 3'600, "S", "Seconds of load before the measurement, not counted")
      ->capture_default_str();
  flag("--rate", options_.rate, 1, 1'000'000'000, "R",
       "Requests per second on a fixed schedule; default: as fast as answers arrive");
  flag("--burst", options_.burst, 1, load_generator::kDepthMax, "N",
       "With --rate: requests that are due at once on a connection")
      ->capture_default_str();
  flag("--threads", options_.threads, 1, load_generator::kThreadsMax, "N", "Threads that generate load")
      ->capture_default_str();
  flag("--cpu", options_.cpu, 0, 1023, "N",
       "Pin the first thread to this core, the second to the next core, and so on");
  flag("--pid", options_.pid, 1, 1 << 30, "PID", "Server process, to report its CPU time");
  app.add_flag("--json", is_json_, "Print the result as one JSON object");
  options_.keys = 100'000;
  flag("--keys", options_.keys, 1, load_generator::kKeysMax, "N", "Number of keys; each request uses a random one")
      ->capture_default_str();

  app.add_flag("--each-key", options_.each_key_once, "Send each key once, in order, then stop: to fill a table");
  app.add_option(
         "--command", command_,
         std::string("RESP: command to send; {key} is a name of 37 bytes, {n} its digits; default: ") + kCommand)
      ->type_name("TEXT");
  text_flag(app, "--path", path_, "PATH", "HTTP: request path; default: /auth, with --batch /v1/checks");
  text_flag(app, "--method", method_, "NAME", "HTTP: method; default: GET, with a body POST");
  app.add_option("--header", headers_, "HTTP: header field; repeatable")->type_name("'N: V'");
  text_flag(app, "--body", body_, "JSON", "HTTP: request body; with --batch, the body of one check");
  app.add_option("--batch", batch_, "HTTP: number of checks in each request")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, kBatchMax));
  text_flag(app, "--domain", domain_, "TEXT", "gRPC: domain; default: bench");
  app.add_option("--entry", entries_, "gRPC: descriptor entry; repeatable; default: user={key}")
      ->type_name("NAME=VALUE");
}

Result<int> BenchCommand::run() {
  if (const auto prepared = prepare(); !prepared) return complain(prepared.error().message, kNotUnderstood);
  ask_for_descriptors(options_.connections + 64);
  const auto outcome = load_generator::run_load(options_);
  if (!outcome) return complain(outcome.error().message, kCouldNot);
  std::fputs((is_json_ ? load_generator::to_json(*outcome) : load_generator::to_text(*outcome)).c_str(), stdout);
  std::fflush(stdout);
  const bool all_failed = outcome->errors >= outcome->times.count();
  return all_failed ? complain("every answer was an error: " + base::in_quotes(outcome->first_error), kCouldNot) : 0;
}

Result<void> BenchCommand::prepare() {
  auto target = base::parse_endpoint(resp_ + http_ + grpc_);
  if (!target) return fail(target.error());
  options_.target = *std::move(target);
  options_.duration = nanoseconds_of(seconds_);
  options_.warmup = options_.each_key_once ? std::chrono::nanoseconds{0} : nanoseconds_of(warmup_);
  if (options_.each_key_once && options_.rate > 0) {
    return fail(ErrorCode::invalid_argument, "--each-key runs at full speed; remove --rate");
  }
  if (pipeline_ > 0 && !grpc_.empty()) {
    return fail(ErrorCode::invalid_argument, "--pipeline is not for --grpc; use --streams");
  }
  if (streams_ > 0 && grpc_.empty())
    return fail(ErrorCode::invalid_argument, "--streams is for --grpc only; use --pipeline");
  if (!resp_.empty()) return prepare_resp();
  return http_.empty() ? prepare_grpc() : prepare_http();
}

Result<void> BenchCommand::prepare_resp() {
  options_.depth = pipeline_ > 0 ? pipeline_ : kRespDepth;
  request_ = load_generator::resp_template(command_.empty() ? kCommand : command_);
  options_.make_exchange = [this] { return load_generator::make_resp_exchange(request_); };
  return {};
}

Result<void> BenchCommand::prepare_http() {
  options_.depth = pipeline_ > 0 ? pipeline_ : kHttpDepth;
  load_generator::HttpRequestText text{
      .host = base::to_string(options_.target), .headers = headers_, .body = body_, .batch = batch_};
  if (batch_ > 0 && text.body.empty()) text.body = kCheck;
  text.method = !method_.empty() ? method_ : text.body.empty() ? "GET" : "POST";
  text.path = !path_.empty() ? path_ : batch_ > 0 ? "/v1/checks" : "/auth";
  if (!text.path.starts_with('/')) {
    return fail(ErrorCode::invalid_argument, "--path " + base::in_quotes(text.path) + " does not begin with /");
  }
  if (text.path.starts_with("/auth") && headers_.empty()) {
    text.headers = {"X-Forwarded-Method: GET", "X-Forwarded-Uri: /users/{n}", "X-Forwarded-For: 192.0.2.1",
                    "X-User: {key}"};
  }
  options_.checks_per_request = std::max<std::uint64_t>(batch_, 1);
  request_ = load_generator::http_template(text);
  options_.make_exchange = [this] { return load_generator::make_http_exchange(request_); };
  return {};
}

Result<void> BenchCommand::prepare_grpc() {
  options_.depth = streams_ > 0 ? streams_ : kGrpcDepth;
  load_generator::RlsRequest request;
  if (!domain_.empty()) request.domain = domain_;
  if (!entries_.empty()) request.entries.clear();
  for (const std::string& entry : entries_) {
    const std::size_t at = entry.find('=');
    if (at == entry.npos || at == 0) {
      return fail(ErrorCode::invalid_argument,
                  "invalid --entry " + base::in_quotes(entry) + "; write it like --entry user={key}");
    }
    request.entries.emplace_back(entry.substr(0, at), entry.substr(at + 1));
  }
  call_ = {base::to_string(options_.target), load_generator::rls_template(request)};
  options_.make_exchange = [this] { return load_generator::make_grpc_exchange(call_); };
  return {};
}

}  // namespace

const Command kBenchCommand{"bench", "Load-test a server: checks per second and latency", declare<BenchCommand>};

}  // namespace weir::cli
