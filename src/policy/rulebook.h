// A compiled policy: which limits does a request charge?
//
// Immutable: a reload builds another rulebook and swaps the pointer, so lookups take no lock. A request is charged by
// every rule that matches, not only the first, because its plan and its address may limit a client at once. Rules
// that name a path are found through a path index. Rules that name a tenant, user, plan or host are found through a
// hash table. The few other rules are checked one by one. Any thread may call it. Tested by rulebook_test.cc,
// tests/matcher_test.cc (against a slow, obvious matcher) and fuzz/rule_matcher.cc.
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
#include <vector>

#include "base/few.h"
#include "base/text_map.h"
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

namespace weir::policy {

inline constexpr std::size_t kPhases = 16;  // phases: fixed windows of different keys begin at different times

// A compiled limit of a rule. It is small, and data that many rules share is stored once: with ten thousand rules, a
// request matches one or two that are in no CPU cache, and each cache line they span costs a miss.
struct BookLimit {
  const Limit* limit = nullptr;
  const Limit* phases = nullptr;  // null, or kPhases of them
  std::string_view suffix;        // appended to its keys
  std::string_view name;          // `steps: 100/minute`
  const Quota* written = nullptr;
  std::uint64_t family = 0;  // see weir::Charge
  std::uint32_t rule = 0;
  std::uint16_t rule_name_bytes = 0;  // of `name`

  std::string_view rule_name() const { return name.substr(0, rule_name_bytes); }
  std::string_view quota_text() const { return name.substr(rule_name_bytes + 2U); }
};

// The conditions that the index does not check: all of `all` must match, and no set in `none_of` may match as a whole.
struct BookConditions {
  std::vector<std::string> entries;  // entry names, if the rule says which entries a request has
  std::vector<Criterion> all;
  std::vector<std::vector<Criterion>> none_of;
};

// The limits of one plan under one rule.
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
  std::uint32_t first_limit = 0, limits = 0;         // for a rule by plan, those of the default plan
  std::uint32_t first_tier = 0, tiers = 0;           // each plan, then the one for subjects with a plan not known yet
  std::uint32_t first_pattern = 0, end_pattern = 0;  // the patterns of its paths
  std::uint32_t counts = 0;                          // index of its decision counters
  Mode mode = Mode::enforce;
  std::uint8_t percent = 100;
  bool otherwise = false;
  bool names_path = false;
  bool is_ban = false;
  bool unlimited = false;
  bool required = false;
  bool count_denied = false;
  bool has_cost = false;  // other than 1
  Fallback fallback = Fallback::local;
};

// A rule in shadow mode. Its limits are charged separately from all others, and are consecutive in the book.
struct ShadowBill {
  std::uint32_t rule = 0;
  const BookLimit* limits = nullptr;  // the first of them
  std::vector<Charge> charges;
};

// A charge without a limit, from an unlimited plan or rule: nothing can deny it, but usage is counted.
struct FreeCharge {
  std::uint32_t rule = 0;
  std::string_view key;  // the key of the rule, without a limit's suffix
  std::int64_t cost = 1;
};

// What the rules charge for one request. Keys are stored in the bill itself, so it cannot be copied or moved.
struct Bill {
  enum class Reason : std::uint8_t {
    no_rule,    // no rule applies
    limits,     // at least one limit is charged
    skipped,    // `skip` hides the request from all rules
    exempt,     // an unlimited rule applies, so only bans are charged
    missing,    // denied: an attribute that a rule requires is missing
    too_many,   // more limits than one request can charge
    ambiguous,  // denied: too many readings of the path, or too many charges over all readings
  };
  static constexpr std::size_t kReasons = 7;
  Reason reason = Reason::no_rule;
  std::uint32_t rule = 0;                           // the exempting rule, or the rule whose attribute is missing
  bool counts_denied = false;                       // at least one charging rule has count_denied
  base::Few<Charge, kChargesMax> charges;           // all or none
  base::Few<const BookLimit*, kChargesMax> limits;  // the limit in the book of each charge
  base::Few<FreeCharge, kChargesMax> free;          // anything beyond this capacity is dropped
  std::vector<ShadowBill> shadows{};
  KeyArena keys;

  Bill() {}  // NOLINT: unused members are not initialized
  Bill(const Bill&) = delete;
  Bill& operator=(const Bill&) = delete;
};

// Stores texts close together, at addresses that never change.
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
  // Fails only for a policy built by hand: the parser has reported every other error already. `counts_of` returns the
  // index of a rule's decision counters; if it is empty, the index is 0.
  using CountsOf = std::function<std::uint32_t(std::string_view rule)>;
  static Result<std::shared_ptr<const Rulebook>> make(Policy policy, const Reader::Compile& compile,
                                                      const CountsOf& counts_of = {},
                                                      std::shared_ptr<Plans> plans = nullptr);
  Rulebook(const Rulebook&) = delete;
  Rulebook& operator=(const Rulebook&) = delete;

  const Policy& policy() const { return policy_; }
  const RequestReading& reading() const { return reading_; }
  const BookRule& rule(std::uint32_t number) const { return rules_[number]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(rules_.size()); }
  const BookLimit& limit(std::uint32_t number) const { return limits_[number]; }
  std::span<const BookTier> tiers(const BookRule& rule) const {
    return std::span(tiers_).subspan(rule.first_tier, rule.tiers);
  }
  Plans* plans() const { return plans_.get(); }  // null if each request states its own plan
  // Whether any rule expires, so that the current time matters.
  bool has_expiring() const { return has_expiring_; }

  // bill()
  //
  // Collects the charges of a request. `now` is only used to leave out expired rules.
  void bill(Facts& facts, std::int64_t now, Bill& out) const;
  // The same for the chosen reading of the path only. Adds to the bill.
  void bill_reading(Facts& facts, std::int64_t now, Bill& out) const;

  // For explanations; uses no index. Returns the first reason why a rule does not match this request, ignoring
  // `otherwise`. Empty if the rule matches.
  std::string mismatch(std::uint32_t rule, Facts& facts, std::int64_t now) const;
  // What the rule counts this request by, as display text of key_name(): `user:42,path:/api/search`. Empty if the
  // request lacks an attribute.
  std::string key_text(std::uint32_t rule, Facts& facts) const;
  // The first attribute of `per` that this request does not have.
  std::optional<Dimension> lacking(std::uint32_t rule, Facts& facts) const;

  // find_rule(), keys_of()
  //
  // find_rule() returns the number of the rule with this name. keys_of() returns the keys that the rule's limits have
  // for this request, whether or not the rule matches it, and including plans that the subject is not on. It fails if
  // the request lacks an attribute of `per`, such as a path that the rule names.
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
  std::uint32_t pattern_of(std::uint32_t rule, Facts& facts) const;

  Policy policy_;
  RequestReading reading_;
  TextStore texts_;
  std::deque<BookConditions> conditions_;
  std::map<std::string, std::vector<Dimension>> pers_;       // by the text of `per`
  std::map<std::string, std::vector<Limit>> shared_limits_;  // by algorithm, quota, and whether it has phases
  std::vector<BookRule> rules_;
  std::vector<BookLimit> limits_;
  std::vector<BookTier> tiers_;
  std::shared_ptr<Plans> plans_;
  std::unique_ptr<Overrides> overrides_;
  bool has_expiring_ = false;
  bool has_unlimited_ = false;
  bool has_otherwise_ = false;

  // Every path pattern has a number: first those of skip, then of templates, then of rules.
  static constexpr std::uint32_t kSkipId = UINT32_MAX;
  static constexpr std::uint32_t kTemplateId = UINT32_MAX - 1;
  static constexpr std::uint32_t kNoPattern = UINT32_MAX;
  std::vector<PathPattern> patterns_;
  std::vector<std::string_view> pattern_keys_;  // each pattern encoded as a part of a key
  std::vector<std::string> identity_keys_;      // what precedes the value in a key, for each attribute of `identity`
  PathIndex paths_;

  using ByValue = base::TextMap<std::vector<std::uint32_t>>;
  static constexpr std::array kIndexed = {weir::AttributeKind::user, weir::AttributeKind::tenant,
                                          weir::AttributeKind::plan, weir::AttributeKind::host};
  std::array<ByValue, kIndexed.size()> by_value_;
  std::vector<std::uint32_t> others_;  // checked one by one
};

// Whether the request has exactly these entries, in this order.
bool has_entries(const Request& request, const std::vector<std::string>& names);

// A hash of a key that is the same on every machine.
std::uint64_t key_mark(std::string_view key);
// The limit as it applies to this key of its rule. `key` has no suffix yet.
const Limit* limit_of_key(const BookLimit& limit, std::string_view key);

}  // namespace weir::policy
