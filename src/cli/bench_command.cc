// Converts flags to a load, and prints its outcome. See bench_command.h.
#include "cli/bench_command.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "base/nearest.h"
#include "cli/complain.h"

namespace weir {

const char* const kBenchExamples =
    "  weir bench --resp :6380                               maximum throughput: 50 connections, 50 commands in flight "
    "each\n"
    "  weir bench --resp :6380 --pipeline 1 --connections 1  one client that waits for each reply\n"
    "  weir bench --resp :6380 --rate 200000                 fixed rate: latency counts from when a request was due\n"
    "  weir bench --resp :6379 --command 'INCR {key}'        any command on any RESP server\n"
    "  weir bench --http :8080                               GET /auth, as a gateway sends it\n"
    "  weir bench --http :8080 --batch 100                   POST /v1/checks, 100 checks in each request\n"
    "  weir bench --grpc :8081 --connections 16              Envoy's ShouldRateLimit, 32 calls in flight on each\n"
    "\n"
    "  --pid $(pidof weir) also reports the server's CPU time per check. On one machine, pin the server with taskset\n"
    "  and the client with --cpu, and compare ratios only.\n"
    "\n";

namespace {

constexpr const char* kCommand = "CL.THROTTLE {key} 1000000 3000000 60 1";
constexpr const char* kCheck = "{\"key\":\"{key}\",\"limit\":\"50000/second burst 1000000\"}";
constexpr std::size_t kRespDepth = 50, kHttpDepth = 1, kGrpcDepth = 32;
constexpr std::uint64_t kBatchMax = 10'000;

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
}

// Many systems give a process 1,024 descriptors, and more on request.
void ask_for_descriptors(std::size_t connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, connections + 64));
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

BenchCommand::BenchCommand(CLI::App& app) {
  bench_ = app.add_subcommand("bench", "Load-test a server: checks per second and latency");
  add_doors();
  add_load();
  add_requests();
}

void BenchCommand::add_doors() {
  CLI::Option_group* doors = bench_->add_option_group("Target", "Server to test");
  doors->add_option("--resp", resp_, "RESP server: Weir or Redis")->type_name("ADDR");
  doors->add_option("--http", http_, "HTTP/1.1 server")->type_name("ADDR");
  doors->add_option("--grpc", grpc_, "Envoy rate limit service over gRPC, without TLS")->type_name("ADDR");
  doors->require_option(1);
}

void BenchCommand::add_load() {
  bench_->add_option("--connections", options_.connections, "Number of connections")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, load::kConnectionsMax))
      ->capture_default_str();
  bench_
      ->add_option("--pipeline", pipeline_, "Requests in flight on each connection; default: 50 with RESP, 1 with HTTP")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, load::kDepthMax));
  bench_->add_option("--streams", streams_, "gRPC calls in flight on each connection; default: 32")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, load::kDepthMax));
  bench_->add_option("--seconds", seconds_, "Measured time in seconds")
      ->type_name("S")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  bench_->add_option("--warmup", warmup_, "Seconds of load before the measurement, not counted")
      ->type_name("S")
      ->check(CLI::Range(0.0, 3'600.0))
      ->capture_default_str();
  bench_
      ->add_option("--rate", options_.rate,
                   "Requests per second on a fixed schedule; default: as fast as answers arrive")
      ->type_name("R")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}));
  bench_->add_option("--burst", options_.burst, "With --rate: requests that are due at once on a connection")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{load::kDepthMax}))
      ->capture_default_str();
  bench_->add_option("--threads", options_.threads, "Threads that generate load")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, load::kThreadsMax))
      ->capture_default_str();
  bench_->add_option("--cpu", options_.cpu, "Pin the first thread to this core, the second to the next core, and so on")
      ->type_name("N")
      ->check(CLI::Range(0, 1023));
  bench_->add_option("--pid", options_.pid, "Server process, to report its CPU time")
      ->type_name("PID")
      ->check(CLI::Range(1, 1 << 30));
  bench_->add_flag("--json", is_json_, "Print the result as one JSON object");
}

void BenchCommand::add_requests() {
  options_.keys = 100'000;
  bench_->add_option("--keys", options_.keys, "Number of keys; each request uses a random one")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, load::kKeysMax))
      ->capture_default_str();
  bench_->add_flag("--each-key", options_.each_key_once, "Send each key once, in order, then stop: fills a server");
  bench_
      ->add_option(
          "--command", command_,
          std::string("RESP: command to send; {key} is a name of 37 bytes, {n} its digits; default: ") + kCommand)
      ->type_name("TEXT");
  bench_->add_option("--path", path_, "HTTP: request path; default: /auth, with --batch /v1/checks")->type_name("PATH");
  bench_->add_option("--method", method_, "HTTP: method; default: GET, with a body POST")->type_name("NAME");
  bench_->add_option("--header", headers_, "HTTP: header field; repeatable")->type_name("'N: V'");
  bench_->add_option("--body", body_, "HTTP: request body; with --batch, the body of one check")->type_name("JSON");
  bench_->add_option("--batch", batch_, "HTTP: number of checks in each request")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, kBatchMax));
  bench_->add_option("--domain", domain_, "gRPC: domain; default: bench")->type_name("TEXT");
  bench_->add_option("--entry", entries_, "gRPC: descriptor entry; repeatable; default: user={key}")
      ->type_name("NAME=VALUE");
}

std::optional<int> BenchCommand::run() {
  if (!*bench_) return {};
  if (const auto prepared = prepare(); !prepared) return complain(prepared.error().message, 2);
  ask_for_descriptors(options_.connections);
  const auto outcome = load::run_load(options_);
  if (!outcome) return complain(outcome.error().message, 1);
  std::fputs((is_json_ ? to_json(*outcome) : to_text(*outcome)).c_str(), stdout);
  std::fflush(stdout);
  const bool all_failed = outcome->errors >= outcome->times.count();
  return all_failed ? complain("every answer was an error: " + in_quotes(outcome->first_error), 1) : 0;
}

Result<void> BenchCommand::prepare() {
  auto target = load::parse_target(resp_ + http_ + grpc_);
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
  request_ = load::resp_template(command_.empty() ? kCommand : command_);
  options_.make_exchange = [this] { return load::make_resp_exchange(request_); };
  return {};
}

Result<void> BenchCommand::prepare_http() {
  options_.depth = pipeline_ > 0 ? pipeline_ : kHttpDepth;
  load::HttpRequestText text{.host = to_string(options_.target), .headers = headers_, .body = body_, .batch = batch_};
  if (batch_ > 0 && text.body.empty()) text.body = kCheck;
  text.method = !method_.empty() ? method_ : text.body.empty() ? "GET" : "POST";
  text.path = !path_.empty() ? path_ : batch_ > 0 ? "/v1/checks" : "/auth";
  if (!text.path.starts_with('/')) {
    return fail(ErrorCode::invalid_argument, "--path " + in_quotes(text.path) + " does not begin with /");
  }
  if (text.path.starts_with("/auth") && headers_.empty()) {
    text.headers = {"X-Forwarded-Method: GET", "X-Forwarded-Uri: /users/{n}", "X-Forwarded-For: 192.0.2.1",
                    "X-User: {key}"};
  }
  options_.checks_per_request = std::max<std::uint64_t>(batch_, 1);
  request_ = load::http_template(text);
  options_.make_exchange = [this] { return load::make_http_exchange(request_); };
  return {};
}

Result<void> BenchCommand::prepare_grpc() {
  options_.depth = streams_ > 0 ? streams_ : kGrpcDepth;
  load::RlsRequest request;
  if (!domain_.empty()) request.domain = domain_;
  if (!entries_.empty()) request.entries.clear();
  for (const std::string& entry : entries_) {
    const std::size_t at = entry.find('=');
    if (at == entry.npos || at == 0) {
      return fail(ErrorCode::invalid_argument,
                  "invalid --entry " + in_quotes(entry) + "; write it like --entry user={key}");
    }
    request.entries.emplace_back(entry.substr(0, at), entry.substr(at + 1));
  }
  call_ = {to_string(options_.target), load::rls_template(request)};
  options_.make_exchange = [this] { return load::make_grpc_exchange(call_); };
  return {};
}

}  // namespace weir
