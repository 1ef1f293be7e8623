// Runs loads and computes medians. See subject.h.
#include "server/subject.h"

#include <algorithm>
#include <chrono>

#include "kit/machine.h"
#include "kit/process.h"
#include "kit/rounds.h"

namespace weir::bench {
namespace {

constexpr std::chrono::milliseconds kWarmup{100};

}  // namespace

// The server has core 0, so the load comes from core 1; two threads of load share both with it.
Subject::Subject(std::string name, const std::string& address, pid_t pid, load_generator::Options load)
    : name_(std::move(name)), options_(std::move(load)) {
  auto target = base::parse_endpoint(address);
  if (!target) throw Missing{name_ + ": " + target.error().message};
  options_.target = *std::move(target);
  options_.pid = pid;
  options_.cpu = options_.threads > 1 ? 0 : std::min(1, cores() - 1);
  options_.warmup = kWarmup;
}

Subject& Subject::resp(const std::string& command) {
  request_ = std::make_unique<load_generator::Template>(load_generator::resp_template(command));
  options_.make_exchange = [request = request_.get()] { return load_generator::make_resp_exchange(*request); };
  return *this;
}

Subject& Subject::http(load_generator::HttpRequestText request) {
  request.host = base::to_string(options_.target);
  request_ = std::make_unique<load_generator::Template>(load_generator::http_template(request));
  options_.make_exchange = [text = request_.get()] { return load_generator::make_http_exchange(*text); };
  return *this;
}

Subject& Subject::grpc() {
  call_ = std::make_unique<load_generator::GrpcTemplate>(load_generator::GrpcTemplate{
      base::to_string(options_.target), load_generator::rls_template(load_generator::RlsRequest{})});
  options_.make_exchange = [call = call_.get()] { return load_generator::make_grpc_exchange(*call); };
  return *this;
}

load_generator::Outcome Subject::checked(const load_generator::Options& options) const {
  auto outcome = load_generator::run_load(options);
  if (!outcome) throw Missing{name_ + ": " + outcome.error().message};
  if (outcome->errors > 0) throw Missing{name_ + " answers with errors: " + outcome->first_error};
  if (outcome->denied > 0)
    throw Missing{name_ + " denied " + std::to_string(outcome->denied) +
                  "; no request of this benchmark should be denied"};
  return *std::move(outcome);
}

load_generator::Outcome Subject::run(double seconds) const {
  load_generator::Options options = options_;
  options.duration = std::chrono::nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
  return checked(options);
}

void Subject::fill() const {
  load_generator::Options options = options_;
  options.each_key_once = true;
  options.warmup = {};
  (void)checked(options);
}

double Subject::median_of(const std::function<double(const load_generator::Outcome&)>& figure) const {
  std::vector<double> figures;
  for (const load_generator::Outcome& outcome : rounds_) figures.push_back(figure(outcome));
  return median(figures);
}

double checks_per_second(const load_generator::Outcome& outcome) { return outcome.checks_per_second(); }
double checks_per_core_second(const load_generator::Outcome& outcome) {
  return 1e9 / outcome.server_ns_per_check().value_or(1e9);
}
double p50_us(const load_generator::Outcome& outcome) {
  return static_cast<double>(outcome.times.percentile(50'000)) / 1e3;
}
double p99_us(const load_generator::Outcome& outcome) {
  return static_cast<double>(outcome.times.percentile(99'000)) / 1e3;
}
double server_us_per_check(const load_generator::Outcome& outcome) {
  return outcome.server_ns_per_check().value_or(0) / 1e3;
}

}  // namespace weir::bench
