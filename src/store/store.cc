// Merges the equal keys of a request. See store.h.

#include "store/store.h"

#include <optional>
#include <string>

#include "algorithm/binding.h"

namespace weir::store {
namespace {

std::int64_t add_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

// Each algorithm has keys of its own. The last bytes are compared first, because most keys begin with the same bytes.
bool is_same_key(const Charge& a, const Charge& b) {
  return a.key.size() == b.key.size() && (a.key.empty() || a.key.back() == b.key.back()) &&
         a.limit->algorithm == b.limit->algorithm && a.key == b.key;
}

// The charges of a request, each key once. In nearly all cases these are the charges themselves.
class Merged {
 public:
  std::optional<Error> add(std::span<const Charge> charges) {
    if (charges.size() > kChargesMax) {
      return Error{ErrorCode::out_of_range, "a request can be charged to at most " + std::to_string(kChargesMax) +
                                                " limits; this one names " + std::to_string(charges.size())};
    }
    charges_ = charges;
    for (std::size_t i = 1; i < charges.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (is_same_key(charges[k], charges[i])) [[unlikely]]
          return merge();
      }
    }
    return {};
  }

  std::span<const Charge> charges() const { return charges_; }

  // Expands the values of the merged charges, at the front, to one for each given charge.
  template <class T>
  void spread(std::span<T> values) const {
    if (values.size() != places_.size()) return;  // nothing was merged, or there are no values
    for (std::size_t i = values.size(); i-- > 0;) values[i] = values[places_[i]];
  }

 private:
  [[gnu::noinline]] std::optional<Error> merge() {
    for (const Charge& charge : charges_) {
      std::size_t same = 0;
      while (same < merged_.size() && !is_same_key(merged_[same], charge)) ++same;
      places_.add(same);
      if (same == merged_.size()) {
        merged_.add(charge);
        continue;
      }
      if (!(*merged_[same].limit == *charge.limit)) {
        return Error{ErrorCode::invalid_argument,
                     "a key is given twice with different limits: two limits need two keys, such as user:42/second and "
                     "user:42/hour"};
      }
      merged_[same].cost = add_saturating(merged_[same].cost, charge.cost);
    }
    charges_ = merged_.all();
    return {};
  }

  std::span<const Charge> charges_;
  base::Few<Charge, kChargesMax> merged_;
  base::Few<std::size_t, kChargesMax> places_;  // in `merged_` of each charge
};

}  // namespace

// The arrays are allocated before anything is charged: if memory runs out, nothing is charged.
Result<Verdict> Store::answer(Request request) {
  Merged merged;
  if (auto wrong = merged.add(request.charges)) return fail(std::move(*wrong));
  Verdict verdict;
  verdict.decisions.resize(request.charges.size());
  if (request.what == Request::What::commit) verdict.reserved.resize(request.charges.size());
  request.charges = merged.charges();
  const auto ruling = decide_all(request, verdict.decisions, verdict.reserved);
  if (!ruling) return fail(ruling.error());
  merged.spread(std::span(verdict.decisions));
  merged.spread(std::span(verdict.reserved));
  merged.spread(request.returned);
  // What a commit, a refund or an overdraft enters has already happened: only the other two can be denied.
  const bool may_deny = request.what == Request::What::charge || request.what == Request::What::reserve;
  verdict.allowed = !may_deny || *ruling != table::Ruling::denied;
  verdict.repeated = *ruling == table::Ruling::repeated;
  verdict.binding = algorithm::binding_of(verdict.decisions, verdict.allowed);
  return verdict;
}

Result<bool> Store::charge_into(std::span<const Charge> charges, std::int64_t now, std::span<Decision> decisions) {
  Merged merged;
  if (auto wrong = merged.add(charges)) return fail(std::move(*wrong));
  const auto ruling = decide_all({.charges = merged.charges(), .now = now}, decisions, {});
  if (!ruling) return fail(ruling.error());
  merged.spread(decisions.first(charges.size()));
  return *ruling != table::Ruling::denied;
}

Result<Verdict> Store::charge(std::span<const Charge> charges, std::int64_t now, RequestId id) {
  return answer({.charges = charges, .id = id.name, .lasts = id.lasts, .now = now});
}

Result<Verdict> Store::overdraw(std::span<const Charge> charges, std::int64_t now) {
  return answer({.what = Request::What::overdraw, .charges = charges, .now = now});
}

Result<Verdict> Store::reserve(std::span<const Charge> charges, std::string_view id, Micros lasts, std::int64_t now) {
  return answer({.what = Request::What::reserve, .charges = charges, .id = id, .lasts = lasts, .now = now});
}

Result<Verdict> Store::commit(std::span<const Charge> actual, std::string_view id, std::int64_t now) {
  return answer({.what = Request::What::commit, .charges = actual, .id = id, .now = now});
}

}  // namespace weir::store
