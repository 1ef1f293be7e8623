// The C++ arithmetic as an engine: one Cell, handled as a store handles it. A header, so that the mutation test can
// compile it against a mutated algorithm.
#pragma once

#include <memory>

#include "algorithm/cell.h"
#include "engine.h"

namespace weir::test {

class CellEngine final : public Engine {
 public:
  explicit CellEngine(const Limit& limit) : limit_(limit), cell_(limit) {}
  std::string_view name() const override { return "C++"; }
  std::unique_ptr<Engine> clone() const override { return std::make_unique<CellEngine>(*this); }

  void change(const Limit& limit) override { limit_ = limit; }

  Decision check(std::int64_t now, std::int64_t cost) override {
    if (cost == 0) return peeked(now).decide(now, 0).decision;
    bool written = cell_.prepare(limit_, now);
    const Stepped<Proposal> outcome = cell_.decide(now, cost);
    if (outcome.decision.allowed) {
      cell_.commit(outcome.next);
      written = true;
    }
    return keep(outcome.decision, written);
  }

  Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) override {
    const bool moved = cell_.prepare(limit_, now);
    const Cell::Refund refund = cell_.refund(now, charged_at(limit_, at), cost);
    if (refund.changed) cell_.commit(refund.outcome.next);
    return keep(refund.outcome.decision, moved || refund.changed);
  }

  Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) override {
    if (cost == 0) return peeked(now).acquire(now, id, 0);
    const bool moved = cell_.prepare(limit_, now);
    const Decision decision = cell_.acquire(now, id, cost);
    return keep(decision, moved || decision.allowed);
  }

  bool release(std::int64_t now, std::string_view id) override {
    const bool moved = cell_.prepare(Limit(cell_.limit()), now);
    const Decision decision = cell_.release(now, id);
    return keep(decision, moved || decision.allowed).allowed;
  }

 private:
  // A peek leaves the state as it is.
  Cell peeked(std::int64_t now) const {
    Cell copy = cell_;
    copy.prepare(limit_, now);
    return copy;
  }

  // What would decide like a key never seen is forgotten when it is written.
  Decision keep(const Decision& decision, bool written) {
    if (written && decision.reset_after.count() == 0) cell_ = Cell(cell_.limit());
    return decision;
  }

  Limit limit_;  // that the next call brings
  Cell cell_;
};

}  // namespace weir::test
