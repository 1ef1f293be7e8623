// The C++ arithmetic as an engine: a Cell for each period, handled as a store handles it. A header, so that the
// mutation test can compile it against a mutated algorithm.
#pragma once

#include <memory>
#include <vector>

#include "algorithm/cell.h"
#include "algorithm/limit.h"
#include "engine.h"

namespace weir::test {

class CellEngine final : public Engine {
 public:
  explicit CellEngine(const Limit& limit) : limit_(limit) {}
  std::string_view name() const override { return "C++"; }
  std::unique_ptr<Engine> clone() const override { return std::make_unique<CellEngine>(*this); }

  void change(const Limit& limit) override { limit_ = limit; }

  Decision check(std::int64_t now, std::int64_t cost) override {
    if (cost == 0) return peeked(now).decide(limit_, now, 0).decision;
    algorithm::Cell& cell = cell_of(limit_);
    bool written = cell.prepare(limit_, now);
    const algorithm::Stepped<algorithm::Proposal> outcome = cell.decide(limit_, now, cost);
    if (outcome.decision.allowed) {
      cell.commit(limit_, outcome);
      written = true;
    }
    return keep(cell, outcome.decision, written);
  }

  Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) override {
    algorithm::Cell& cell = cell_of(limit_);
    const bool moved = cell.prepare(limit_, now);
    const algorithm::Cell::Refund refund = cell.refund(limit_, now, algorithm::charged_at(limit_, at), cost);
    if (refund.changed) cell.commit(limit_, refund.outcome);
    return keep(cell, refund.outcome.decision, moved || refund.changed);
  }

  Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) override {
    if (cost == 0) return peeked(now).acquire(limit_, now, id, 0);
    algorithm::Cell& cell = cell_of(limit_);
    const bool moved = cell.prepare(limit_, now);
    const Decision decision = cell.acquire(limit_, now, id, cost);
    return keep(cell, decision, moved || decision.allowed);
  }

  bool release(std::int64_t now, std::string_view id) override {
    algorithm::Cell& cell = cell_of(limit_);
    const bool moved = cell.prepare(now);
    const Decision decision = cell.release(now, id);
    return keep(cell, decision, moved || decision.allowed).allowed;
  }

 private:
  // One for each state that the limits so far count in.
  algorithm::Cell& cell_of(const Limit& limit) {
    for (algorithm::Cell& cell : cells_) {
      if (algorithm::shares_state(cell.limit(), limit)) return cell;
    }
    return cells_.emplace_back(limit);
  }

  // A peek leaves the state as it is.
  algorithm::Cell peeked(std::int64_t now) {
    algorithm::Cell copy = cell_of(limit_);
    copy.prepare(limit_, now);
    return copy;
  }

  // Drops a written state that would decide like a new key.
  static Decision keep(algorithm::Cell& cell, const Decision& decision, bool written) {
    if (written && decision.reset_after.count() == 0) cell = algorithm::Cell(Limit(cell.limit()));
    return decision;
  }

  Limit limit_;  // that the next call brings
  std::vector<algorithm::Cell> cells_;
};

}  // namespace weir::test
