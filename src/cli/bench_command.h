// `weir bench`: puts a server under load and reports the result.
//
// It speaks RESP, HTTP and gRPC, so it also measures other servers. Exit codes: 0 success, 1 failure or only error
// answers, 2 invalid command line. One thread beside those that generate load. Tested by tests/server/load.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load_generator/load.h"

namespace weir {

extern const char* const kBenchExamples;

class BenchCommand {
 public:
  explicit BenchCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  void add_doors();
  void add_load();
  void add_requests();
  Result<void> prepare();
  Result<void> prepare_resp();
  Result<void> prepare_http();
  Result<void> prepare_grpc();

  CLI::App* bench_ = nullptr;
  std::string resp_, http_, grpc_;
  std::uint64_t pipeline_ = 0, streams_ = 0;  // 0: the protocol's default
  double seconds_ = 5, warmup_ = 0.2;
  std::string command_, path_, method_, body_, domain_;
  std::vector<std::string> headers_, entries_;
  std::uint64_t batch_ = 0;
  bool is_json_ = false;

  load::Options options_;
  load::Template request_;
  load::GrpcTemplate call_;
};

}  // namespace weir
