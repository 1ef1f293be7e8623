// An engine is anything that decides for one key: the oracle, the C++ arithmetic, the Lua script, later a protocol.
//
// The differential tests replay one trace on several engines and compare every field of every answer; they also branch,
// so an engine can be copied with its state. Not for several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir::test {

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<Engine> clone() const = 0;

  // The limit rules from the next call on; what was spent stays spent.
  virtual void change(const Limit& limit) = 0;
  virtual Decision check(std::int64_t now, std::int64_t cost) = 0;
  // Takes back what was charged at `at`, under this limit. What a peek says then.
  virtual Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) = 0;
  virtual Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) = 0;
  virtual bool release(std::int64_t now, std::string_view id) = 0;
};

// `allow, 3 left of 5, retry 0, reset 12, delay 0`, times in microseconds.
std::string to_string(const Decision& decision);

std::unique_ptr<Engine> oracle_engine(const Limit& limit);
std::unique_ptr<Engine> cell_engine(const Limit& limit);

}  // namespace weir::test
