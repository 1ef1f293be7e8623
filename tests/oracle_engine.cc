// The oracle as an engine: see engine.h. Calendar windows come from glibc, so that nothing of the library's own
// calendar is believed.

#include "algorithm/calendar.h"
#include "engine.h"
#include "glibc_windows.h"
#include "oracle.h"

namespace weir::test {
namespace {

oracle::WindowsAt windows_of(const Limit& limit) {
  if (!limit.calendar) return {};
  return oracle::glibc_windows({limit.calendar->unit(), limit.calendar->zone_name()}).value();
}

class OracleEngine final : public Engine {
 public:
  explicit OracleEngine(const Limit& limit) : limit_(limit), oracle_(limit, windows_of(limit)) {}
  std::string_view name() const override { return "the oracle"; }
  std::unique_ptr<Engine> clone() const override { return std::make_unique<OracleEngine>(*this); }
  void change(const Limit& limit) override {
    limit_ = limit;
    oracle_.change(limit, windows_of(limit));
  }
  Decision check(std::int64_t now, std::int64_t cost) override { return oracle_.step(now, cost); }
  Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) override {
    return oracle_.refund(now, cost, at, limit_);
  }
  Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) override {
    return oracle_.acquire(now, id, cost);
  }
  bool release(std::int64_t now, std::string_view id) override { return oracle_.release(now, id); }

 private:
  Limit limit_;
  oracle::Oracle oracle_;
};

}  // namespace

std::unique_ptr<Engine> oracle_engine(const Limit& limit) { return std::make_unique<OracleEngine>(limit); }

}  // namespace weir::test
