// Checks several views of one request as one event. See check_together() in weir/gate.h. Any thread.
//
// Views that meet the same key share one charge. So two descriptors that name the same client charge its limit once,
// in any order. If a view lacks a required attribute, nothing can be charged; the other views then get the decisions
// they would have had.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/few.h"
#include "gate/gate_impl.h"

namespace weir {
namespace {

// The charges of all views, each key once.
class Sum {
 public:
  // Returns the index of the charge's decision; nothing if there are too many charges.
  std::optional<std::uint8_t> add(const Charge& charge) {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
      const bool is_other = charges_[i].key != charge.key || charges_[i].space != charge.space;
      if (is_other || !is_same(charges_[i].limit, charge.limit)) continue;
      charges_[i].cost = std::max(charges_[i].cost, charge.cost);
      return static_cast<std::uint8_t>(i);
    }
    if (charges_.size() == kChargesMax) return {};
    charges_.add(charge);
    return static_cast<std::uint8_t>(charges_.size() - 1);
  }

  std::span<const Charge> charges() const { return charges_.all(); }

 private:
  static bool is_same(const Limit* a, const Limit* b) { return a == b || (a != nullptr && b != nullptr && *a == *b); }

  base::Few<Charge, kChargesMax> charges_;
};

// One view of the request: its charges, and their indexes in the sum.
struct View {
  policy::Bill bill;
  std::array<std::uint8_t, kChargesMax> places;

  View() {}  // not even zeroed until used
};

Error too_many() {
  return {ErrorCode::exhausted, "more than " + std::to_string(kChargesMax) +
                                    " limits apply to the parts of this request; Weir cannot charge them all at once"};
}

void write_part(const Request& request, View& view, std::span<const Charge> charges, std::span<const Decision> all,
                Answer& answer) {
  base::Few<Decision, kChargesMax> own;
  for (std::size_t i = 0; i < view.bill.charges.size(); ++i) {
    view.bill.charges[i].cost = charges[view.places[i]].cost;
    own.add(all[view.places[i]]);
  }
  gate::write_verdict(request, view.bill, {std::ranges::all_of(own, &Decision::allowed), own.all()}, answer);
}

}  // namespace

// The state of one call.
class Gate::Impl::Together {
 public:
  Together(Impl& gate, std::span<const Request> requests, std::span<Answer> answers)
      : gate_(gate), requests_(requests), answers_(answers), views_(std::make_unique<View[]>(requests.size())) {}

  Result<bool> run(const std::shared_ptr<const policy::Rulebook>& book, std::span<const Charge> also,
                   std::span<Decision> decisions) {
    if (auto begun = begin(book); !begun) return fail(begun.error());
    std::vector<std::uint8_t> places;
    for (const Charge& charge : also) {
      const auto place = sum_.add(charge);
      if (!place) return fail(too_many());
      places.push_back(*place);
    }
    const auto verdict = decide();
    if (!verdict) return fail(verdict.error());
    for (std::size_t i = 0; i < also.size(); ++i) decisions[i] = verdict->decisions[places[i]];
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (!answers_[i].allowed || views_[i].bill.charges.size() == 0) continue;
      write_part(requests_[i], views_[i], sum_.charges(), verdict->decisions, answers_[i]);
    }
    if (verdict->allowed) {
      charge_shadows();
    } else if (auto counted = charge_denied(); !counted) {
      return fail(counted.error());
    }
    const Micros now = gate_.limiter.now();
    post(verdict->allowed, now);
    for (std::size_t i = 0; i < requests_.size(); ++i) gate_.count(requests_[i], views_[i].bill, answers_[i], now);
    const std::vector<Result<Decision>> beside(decisions.begin(), decisions.end());
    gate_.count_inline(also, beside, now);
    return verdict->allowed;
  }

 private:
  Result<void> begin(const std::shared_ptr<const policy::Rulebook>& book) {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      policy::Bill& bill = views_[i].bill;
      if (auto begun = gate_.begin(book, requests_[i], bill, answers_[i]); !begun) return begun;
      is_missing_ = is_missing_ || !answers_[i].allowed;
      for (std::size_t c = 0; c < bill.charges.size(); ++c) {
        const auto place = sum_.add(bill.charges[c]);
        if (!place) return fail(too_many());
        views_[i].places[c] = *place;
      }
    }
    return {};
  }

  Result<Verdict> decide() {
    if (is_missing_) {
      auto verdict = gate::look(gate_.limiter, sum_.charges());
      if (verdict) verdict->allowed = false;
      return verdict;
    }
    if (sum_.charges().empty()) return Verdict{.allowed = true};
    return gate_.limiter.check_all(sum_.charges());
  }

  // Charges each limit once, as in the sum.
  Result<void> charge_denied() {
    std::array<bool, kChargesMax> counts{};
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const policy::Bill& bill = views_[i].bill;
      for (std::size_t c = 0; bill.counts_denied && c < bill.charges.size(); ++c) {
        const policy::Rulebook& book = *answers_[i].rules;
        counts[views_[i].places[c]] = book.rule(bill.limits[c]->rule).count_denied;
      }
    }
    base::Few<Charge, kChargesMax> counted;
    for (std::size_t i = 0; i < sum_.charges().size(); ++i) {
      if (counts[i] && sum_.charges()[i].cost > 0) counted.add(sum_.charges()[i]);
    }
    if (counted.size() == 0) return {};
    return gate_.limiter.overdraw(counted.all()).map([](const Verdict&) {});
  }

  // Posts each charge of the sum once, for the first view that has it. If nothing was charged, posts the denials.
  void post(bool allowed, Micros now) {
    std::array<bool, kChargesMax> seen{};
    std::vector<std::string_view> free_keys;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (answers_[i].allowed != allowed) continue;
      std::array<bool, kChargesMax> is_new{};
      for (std::size_t c = 0; c < views_[i].bill.charges.size(); ++c) {
        is_new[c] = !std::exchange(seen[views_[i].places[c]], true);
      }
      OtherViews others{is_new, free_keys};
      gate_.post(views_[i].bill, answers_[i], now, PostFree::yes, &others);
    }
  }

  // Charges each rule in shadow mode once per key, with the highest cost, too. A rule's first key identifies the
  // charge.
  void charge_shadows() {
    std::map<std::string_view, std::int64_t> costs;
    each_shadow([&](std::size_t, policy::ShadowBill& shadow) {
      const auto [at, is_new] = costs.try_emplace(shadow.charges[0].key, shadow.charges[0].cost);
      if (!is_new) at->second = std::max(at->second, shadow.charges[0].cost);
    });
    std::map<std::string_view, Result<Verdict>> verdicts;
    each_shadow([&](std::size_t i, policy::ShadowBill& shadow) {
      for (Charge& charge : shadow.charges) charge.cost = costs[shadow.charges[0].key];
      auto verdict = verdicts.find(shadow.charges[0].key);
      if (verdict == verdicts.end()) verdict = verdicts.emplace(shadow.charges[0].key, charge(i, shadow)).first;
      if (verdict->second) gate::write_shadow(shadow, verdict->second->decisions, answers_[i]);
    });
  }

  template <class F>
  void each_shadow(F call) {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      for (policy::ShadowBill& shadow : views_[i].bill.shadows) call(i, shadow);
    }
  }

  Result<Verdict> charge(std::size_t i, const policy::ShadowBill& shadow) {
    auto verdict = gate_.limiter.check_all(shadow.charges);
    const bool is_counted = verdict && !verdict->allowed && answers_[i].rules->rule(shadow.rule).count_denied;
    if (is_counted) static_cast<void>(gate_.limiter.overdraw(shadow.charges));
    return verdict;
  }

  Impl& gate_;
  std::span<const Request> requests_;
  std::span<Answer> answers_;
  std::unique_ptr<View[]> views_;
  Sum sum_;
  bool is_missing_ = false;
};

Result<bool> Gate::check_together(const std::shared_ptr<const policy::Rulebook>& rules,
                                  std::span<const Request> requests, std::span<Answer> answers,
                                  std::span<const Charge> also, std::span<Decision> decisions) noexcept {
  WEIR_ASSERT(answers.size() == requests.size());
  WEIR_ASSERT(decisions.size() == also.size());
  return impl_->counted([&] { return Impl::Together(*impl_, requests, answers).run(rules, also, decisions); });
}

}  // namespace weir
