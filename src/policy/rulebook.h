// A policy compiled: which limits must this request be charged to?
//
// Immutable: a reload makes another one and swaps the pointer, so asking takes no lock. Every rule that matches is on
// the bill, not only the first, because a client may be held by its plan and by its address at once. Rules that name a
// path are found through an index of paths, those that name a tenant, user, plan or host through a hash table; the few
// others are asked one by one. Any thread. Tested by rulebook_test.cc, tests/matcher_test.cc (against a slow, obvious
// matcher) and fuzz/rule_matcher.cc.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "few.h"
#include "policy/criterion.h"
#include "policy/facts.h"
#include "policy/key_arena.h"
#include "policy/overrides.h"
#include "policy/path_index.h"
#include "policy/reader.h"
#include "weir/plans.h"
#include "weir/policy.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

inline constexpr std::size_t kPhases = 16;  // at which fixed windows of different keys begin

// A limit of a rule, compiled. Small, and what many rules share is kept once: of ten thousand rules a request meets one
// or two that are in no cache, and every line that they lie in is waited for.
struct BookLimit {
  const Limit* limit = nullptr;
  const Limit* phases = nullptr;  // null, or kPhases of them
  std::string_view suffix;        // of its keys
  std::string_view name;          // `steps: 100/minute`
  const Quota* written = nullptr;
  std::uint64_t family = 0;  // see weir::Charge
  std::uint32_t rule = 0;
  std::uint16_t rule_name_bytes = 0;  // of `name`

  std::string_view rule_name() const { return name.substr(0, rule_name_bytes); }
  std::string_view quota_text() const { return name.substr(rule_name_bytes + 2U); }
};

// Beside what the index answers: all must hold, and of each of the sets not all.
struct BookConditions {
  std::vector<std::string> entries;  // their names, if it matters which there are
  std::vector<Criterion> all;
  std::vector<std::vector<Criterion>> none_of;
};

// What a plan entitles to, under one rule.
struct BookTier {
  std::string_view name;
  std::uint32_t first_limit = 0, limits = 0;
};

struct BookRule {
  std::string_view key_prefix;
  const std::vector<Dimension>* per = nullptr;
  const BookConditions* conditions = nullptr;  // null if there are none
  const Rule* rule = nullptr;                  // of the policy in the same book
  std::int64_t expires_us = INT64_MAX;
  std::uint32_t first_limit = 0, limits = 0;         // of a rule by plan, those of the default
  std::uint32_t first_tier = 0, tiers = 0;           // each plan, then the default of those whose plan is not known yet
  std::uint32_t first_pattern = 0, end_pattern = 0;  // those of its paths
  std::uint32_t counts = 0;                          // where it is counted what it decides
  Mode mode = Mode::enforce;
  std::uint8_t percent = 100;
  bool otherwise = false;
  bool names_path = false;
  bool is_ban = false;
  bool unlimited = false;
  bool required = false;
  bool count_denied = false;
  bool has_cost = false;  // another than 1
  Fallback fallback = Fallback::local;
};

// A rule in shadow, whose limits are charged apart from all others. They follow each other in the book.
struct ShadowBill {
  std::uint32_t rule = 0;
  const BookLimit* limits = nullptr;  // the first of them
  std::vector<Charge> charges;
};

// What a rule lets pass without a limit, as a plan or the rule itself says: nothing is charged, but it is spent.
struct FreeCharge {
  std::uint32_t rule = 0;
  std::string_view key;  // of the rule, without any limit's suffix
  std::int64_t cost = 1;
};

// What the rules ask of one request. Keys lie in the bill itself, so it is neither copied nor moved.
struct Bill {
  enum class Reason : std::uint8_t {
    no_rule,    // nothing applies
    limits,     // charged to some
    skipped,    // no rule sees it
    exempt,     // an unlimited rule lets it pass; bans apart
    missing,    // an attribute that a rule requires is not there: denied
    too_many,   // more limits than can be charged at once
    ambiguous,  // more readings of the path than can be judged, or charged at once: denied
  };
  static constexpr std::size_t kReasons = 7;
  Reason reason = Reason::no_rule;
  std::uint32_t rule = 0;                     // the one that exempts, or that lacks an attribute
  bool counts_denied = false;                 // some of the rules do
  Few<Charge, kChargesMax> charges;           // all or none
  Few<const BookLimit*, kChargesMax> limits;  // of each charge, its limit in the book
  Few<FreeCharge, kChargesMax> free;          // further ones are left out
  std::vector<ShadowBill> shadows{};
  KeyArena keys;

  Bill() {}  // NOLINT: what is not used is not even zeroed
  Bill(const Bill&) = delete;
  Bill& operator=(const Bill&) = delete;
};

// Texts that lie close together and stay where they are.
class TextStore {
 public:
  std::string_view keep(std::string_view text);

 private:
  static constexpr std::size_t kChunk = 65'536;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t left_ = 0;
  char* at_ = nullptr;
};

class Rulebook {
 public:
  // What is wrong was said by the parser already, but for a policy that was put together by hand.
  // `counts_of` says where a rule is counted; nowhere if it is empty.
  using CountsOf = std::function<std::uint32_t(std::string_view rule)>;
  static Result<std::shared_ptr<const Rulebook>> make(Policy policy, const Reader::Compile& compile,
                                                      const CountsOf& counts_of = {},
                                                      std::shared_ptr<Plans> plans = nullptr);
  Rulebook(const Rulebook&) = delete;
  Rulebook& operator=(const Rulebook&) = delete;

  const Policy& policy() const { return policy_; }
  const Reading& reading() const { return reading_; }
  const BookRule& rule(std::uint32_t number) const { return rules_[number]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(rules_.size()); }
  const BookLimit& limit(std::uint32_t number) const { return limits_[number]; }
  std::span<const BookTier> tiers(const BookRule& rule) const {
    return std::span(tiers_).subspan(rule.first_tier, rule.tiers);
  }
  Plans* plans() const { return plans_.get(); }  // null: requests say themselves what plan they are on
  // Whether the time makes a difference to which rules there are.
  bool has_expiring() const { return has_expiring_; }

  // bill()
  //
  // `now` only tells which rules have expired.
  void bill(Facts& facts, std::int64_t now, Bill& out) const;
  // The same by the one reading of the path that is chosen. Adds to the bill.
  void bill_reading(Facts& facts, std::int64_t now, Bill& out) const;

  // For explanations, without any index: the first reason why a rule is not about this request, without regard to
  // `otherwise`. Empty if it is.
  std::string mismatch(std::uint32_t rule, Facts& facts, std::int64_t now) const;
  // What the rule counts this request by, for people: `user 42, path /api/search`. API keys by their hash.
  std::string key_text(std::uint32_t rule, Facts& facts) const;
  // The first attribute of `per` that this request lacks.
  std::optional<Dimension> lacking(std::uint32_t rule, Facts& facts) const;

  // find_rule(), keys_of()
  //
  // The number of the rule with this name. The keys that its limits have for this request, also those of plans that it
  // is not on, whatever the rule's match says; an error if the request lacks an attribute of `per`, such as a path that
  // the rule names.
  std::optional<std::uint32_t> find_rule(std::string_view name) const;
  Result<std::vector<std::string_view>> keys_of(std::uint32_t rule, Facts& facts, KeyArena& keys) const;

 private:
  enum class Applied : std::uint8_t { no, enforced, in_shadow };

  Rulebook() = default;

  Result<void> compile(const Reader::Compile& compile);
  Result<void> compile_rule(std::uint32_t number, const Reader::Compile& compile);
  Result<void> compile_tiers(std::uint32_t number, const Reader::Compile& compile);
  Result<void> compile_limits(std::uint32_t number, std::span<const RuleLimit> written, std::string_view apart,
                              const Reader::Compile& compile);
  Result<void> add_pattern(const std::string& text, std::uint32_t id);
  Result<void> index_rule(std::uint32_t number);

  void bill_readings(Facts& facts, std::int64_t now, Bill& out) const;
  void find_by_value(Facts& facts, PathHits& hits) const;
  static bool is_about(const BookRule& rule, Facts& facts, std::int64_t now);
  Result<const std::vector<Limit>*> limits_of(const RuleLimit& written, bool has_phases,
                                              const Reader::Compile& compile);
  bool is_exempt(std::span<const PathHit> hits, std::uint32_t template_pattern, Facts& facts, std::int64_t now,
                 Bill& out) const;
  std::optional<std::string_view> begin_key(const PathHit& hit, Facts& facts, KeyArena& keys) const;
  static bool is_in_shadow(const BookRule& rule, std::string_view key);
  static bool is_strict(const BookRule& rule);
  Applied would_apply(const PathHit& hit, Facts& facts, KeyArena& keys) const;
  Applied apply(const PathHit& hit, Facts& facts, Bill& out) const;
  void charge(const BookRule& rule, Facts& facts, std::string_view key, Applied how, Bill& out) const;
  bool is_billed(const BookRule& rule, std::string_view key, const Bill& bill) const;
  void let_pass(const BookRule& rule, Facts& facts, std::string_view key, Bill& out) const;
  std::span<const BookLimit> limits_for(const BookRule& rule, Facts& facts, KeyArena& keys) const;
  std::span<const BookLimit> limits_of_plan(const BookRule& rule, const PlanTerms& terms) const;
  bool append_subject(const Dimension& dimension, Facts& facts, KeyArena& out) const;
  bool append(const Dimension& dimension, std::uint32_t pattern, Facts& facts, KeyArena& out) const;
  bool append_identity(Facts& facts, KeyArena& out) const;
  std::string value_text(const Dimension& dimension, std::uint32_t rule, Facts& facts) const;
  std::uint32_t pattern_of(std::uint32_t rule, Facts& facts) const;

  Policy policy_;
  Reading reading_;
  TextStore texts_;
  std::deque<BookConditions> conditions_;
  std::map<std::string, std::vector<Dimension>> pers_;       // by how they are written
  std::map<std::string, std::vector<Limit>> shared_limits_;  // by algorithm and quota, and whether it has phases
  std::vector<BookRule> rules_;
  std::vector<BookLimit> limits_;
  std::vector<BookTier> tiers_;
  std::shared_ptr<Plans> plans_;
  std::unique_ptr<Overrides> overrides_;
  bool has_expiring_ = false;
  bool has_unlimited_ = false;
  bool has_otherwise_ = false;

  // Every path pattern has a number: those of skip, of the templates, then those of rules.
  static constexpr std::uint32_t kSkipId = UINT32_MAX;
  static constexpr std::uint32_t kTemplateId = UINT32_MAX - 1;
  static constexpr std::uint32_t kNoPattern = UINT32_MAX;
  std::vector<PathPattern> patterns_;
  std::vector<std::string_view> pattern_keys_;  // as parts of keys
  std::vector<std::string> identity_keys_;      // what stands before the value, for each kind that identity may be
  PathIndex paths_;

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using ByValue = std::unordered_map<std::string, std::vector<std::uint32_t>, TextHash, std::equal_to<>>;
  static constexpr std::array kIndexed = {AttributeKind::user, AttributeKind::tenant, AttributeKind::plan,
                                          AttributeKind::host};
  std::array<ByValue, kIndexed.size()> by_value_;
  std::vector<std::uint32_t> others_;  // asked one by one
};

// Whether the request has entries of these names, in this order, and no others.
bool has_entries(const Request& request, const std::vector<std::string>& names);

// A number that is the same for a key on every machine.
std::uint64_t key_mark(std::string_view key);
// As it applies to this key of its rule, which has no suffix yet.
const Limit* limit_of_key(const BookLimit& limit, std::string_view key);

}  // namespace weir
