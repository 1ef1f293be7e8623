// A server under one kind of load, and the results of each round.
//
// Like Contestant in kit/rounds.h, but a round returns everything that the load generator measured. So one run gives
// throughput, times and processor time. A figure of a subject is the median of its rounds. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "load_generator/load.h"

namespace weir::bench {

class Subject {
 public:
  // `load` is without the server: its target, its pid and the request.
  Subject(std::string name, const std::string& address, pid_t pid, load_generator::Options load);

  Subject& resp(const std::string& command);
  Subject& http(load_generator::HttpRequestText request);
  Subject& grpc();

  const std::string& name() const { return name_; }
  void set_rate(std::uint64_t rate) { options_.rate = rate; }

  // Runs the load. Throws Missing if that fails, or if an answer is an error or a denial.
  load_generator::Outcome run(double seconds) const;
  // Sends each key once.
  void fill() const;
  void turn(double seconds) { rounds_.push_back(run(seconds)); }
  void forget() { rounds_.clear(); }

  double median_of(const std::function<double(const load_generator::Outcome&)>& figure) const;

 private:
  load_generator::Outcome checked(const load_generator::Options& options) const;

  std::string name_;
  load_generator::Options options_;
  std::unique_ptr<load_generator::Template> request_;  // keeps its address when the subject moves
  std::unique_ptr<load_generator::GrpcTemplate> call_;
  std::vector<load_generator::Outcome> rounds_;
};

// Figures of a round.
double checks_per_second(const load_generator::Outcome& outcome);
double checks_per_core_second(const load_generator::Outcome& outcome);  // by the server's processor time
double p50_us(const load_generator::Outcome& outcome);
double p99_us(const load_generator::Outcome& outcome);
double server_us_per_check(const load_generator::Outcome& outcome);

}  // namespace weir::bench
