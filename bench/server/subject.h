// A server under one kind of load, and what came of it in each round.
//
// Like Contestant in kit/rounds.h, but a round here gives all that the generator saw, so that one run serves for
// throughput, times and processor time. The figure of a subject is the median of its rounds. One thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "load_generator/load.h"

namespace weir::bench {

// How a request is made and how many go at once; the rest of load::Options is the bench's.
struct Shape {
  std::size_t connections = 50;
  std::size_t depth = 1;
  std::uint64_t keys = 1;
  std::uint64_t rate = 0;
  std::uint64_t burst = 1;
  std::uint64_t checks_per_request = 1;
  std::size_t threads = 1;
};

class Subject {
 public:
  Subject(std::string name, std::string address, pid_t pid, const Shape& shape);

  Subject& resp(const std::string& command);
  Subject& http(load::HttpRequestText request);
  Subject& grpc();

  const std::string& name() const { return name_; }
  void set_rate(std::uint64_t rate) { options_.rate = rate; }

  // A load for so long; throws Missing if it cannot be, or if there are errors among the answers.
  load::Outcome run(double seconds) const;
  // Each of the keys once.
  void fill() const;
  void turn(double seconds) { rounds_.push_back(run(seconds)); }
  void forget() { rounds_.clear(); }

  double median_of(const std::function<double(const load::Outcome&)>& figure) const;

 private:
  load::Outcome checked(const load::Options& options) const;

  std::string name_;
  load::Options options_;
  std::unique_ptr<load::Template> request_;  // stays where it is when the subject moves
  std::unique_ptr<load::GrpcTemplate> call_;
  std::vector<load::Outcome> rounds_;
};

// One round to warm up, which does not count, then `rounds` that do, each subject in its turn.
void alternate(std::span<Subject* const> subjects, int rounds, double seconds);

// Figures of a round.
double checks_per_second(const load::Outcome& outcome);
double checks_per_core_second(const load::Outcome& outcome);  // of the time that the server ran
double p50_us(const load::Outcome& outcome);
double p99_us(const load::Outcome& outcome);
double server_us_per_check(const load::Outcome& outcome);

}  // namespace weir::bench
