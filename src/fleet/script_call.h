// One call of the script that decides inside Redis. It packs many requests into a list of words, and unpacks the
// integers of the reply into decisions.
//
//   ScriptCall call("weir:");
//   while (more && call.add(*next)) ...            // false: the next one must go into another call
//   send("EVALSHA", sha, call.words(deadline, now));
//   if (auto read = call.read(integers); read && *read == ScriptCall::Read::answered) ...   // all are decided
//
// Requests are decided in the order of add(). A key is read and written once, however many of them use it, and
// consecutive equal requests are sent once. It does no I/O. The head of script.lua documents the layout. One thread.
// Tested by tests/script_test.cc, differential_test.cc and redis_script_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

// Bounds of one call, so that it does not block Redis for long.
inline constexpr std::size_t kScriptKeysMax = 128;
inline constexpr std::size_t kScriptDecisionsMax = 512;

// One request and its result. Whatever it points to must stay valid until the result is there.
struct ScriptRequest {
  enum class What : std::uint8_t {
    charge,      // charges all or none
    look,        // one charge: what a charge would return
    overdraw,    // as much of each charge as fits
    once,        // a charge, unless one with this id was allowed before
    reserve,     // a charge that commit settles
    commit,      // with the actual costs; fills in `reserved`
    acquire,     // one charge: permits in flight
    release,     // one charge, whose limit may be null
    undo,        // one charge: refunds a charge made at `charged_us`
    forget,      // one key, under every algorithm; alone in its call
    write_back,  // overdraw, unless a write-back with this id was done before
  };
  enum class Ruling : std::uint8_t {
    denied,
    allowed,
    repeated,
    missing,
    no_state,  // the value at the key is not of this version: nothing was decided
  };

  What what = What::charge;
  std::span<const Charge> charges{};   // each key once
  std::string_view id{};               // of the request, the reservation or the permits
  Micros lasts{0};                     // once, reserve, write_back
  std::string_view ticket_subject{};   // write_back: several in one call may share an id; empty: that of the first key
  std::int64_t charged_us = 0;         // undo: a time of Redis's clock
  std::span<Decision> decisions{};     // one element per charge
  std::span<std::int64_t> reserved{};  // commit: one element per charge

  Ruling ruling = Ruling::denied;
  ScriptRequest* next = nullptr;  // another equal request: used by the call
};

class ScriptCall {
 public:
  enum class Read : std::uint8_t {
    answered,
    late,  // past the deadline, or by Redis's clock in other calendar windows: nothing was done
  };

  explicit ScriptCall(std::string prefix) : prefix_(std::move(prefix)) {}

  // add()
  //
  // Returns false, and adds nothing, if the request does not fit or one of its keys is here under another limit.
  bool add(ScriptRequest& request);
  bool is_empty() const { return items_.empty(); }
  std::size_t requests() const { return requests_; }
  std::size_t keys() const { return keys_.size(); }
  void clear();

  // words()
  //
  // Returns the number of keys, the keys, and the arguments. `now_us` is about the time of Redis: it selects the
  // calendar windows to send, including one on each side. A deadline of 0 means none. Valid until the next call of
  // any member.
  std::span<const std::string_view> words(std::int64_t deadline_us, std::int64_t now_us);

  // read()
  //
  // Returns an error if the reply does not match the requests; then nothing in it is reliable.
  Result<Read> read(std::span<const std::int64_t> reply);
  // The time of Redis in the last reply read.
  std::int64_t now_us() const { return now_us_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Key {
    std::string name;
    char mark = 0;
    const Limit* limit = nullptr;
    std::size_t run = kNone;  // the last item, if equal ones can join it
    std::uint32_t uses = 0;   // by items
    bool has_debt = false;    // one of them is a write-back sent along with a run
    bool is_apart = false;    // of a ticket: one of its write-backs cannot be sent with the runs
    std::uint16_t number = 0;
  };
  struct Item {
    ScriptRequest* first = nullptr;
    ScriptRequest* last = nullptr;
    std::uint16_t times = 1;
    std::uint32_t keys_at = 0;  // in uses_: the keys of its charges, then of its tickets
    bool is_run = false;        // the only item of its key, and the key's number describes it fully
    bool is_debt = false;       // a write-back whose keys are runs
  };

  bool fits(const ScriptRequest& request);
  std::size_t place_of(char mark, std::string_view subject, std::string_view key, const Limit* limit);
  bool join_run(ScriptRequest& request, std::size_t key);
  void name_ticket(std::string_view id, const Charge& charge);
  std::size_t use(std::size_t key);
  bool can_be_run(const Key& key) const;
  bool can_be_debt(std::size_t place) const;
  Key& ticket_of(const Item& item) { return keys_[uses_[item.keys_at + item.first->charges.size()]]; }
  void find_runs();
  std::span<const std::uint16_t> keys_of(const Item& item) const;
  void append_runs(std::uint16_t& number, std::int64_t now_us);
  void append_debts(std::uint16_t& number, std::int64_t now_us);
  void append_key(Key& key, std::uint16_t number, std::int64_t cost, std::int64_t now_us);
  void append_terms(const Key& key, std::int64_t cost, std::int64_t now_us);
  void append_item(const Item& item);
  Result<void> read_run(const Item& item, std::span<const std::int64_t> reply, std::size_t& at);
  Result<void> read_tickets(std::span<const std::int64_t> reply, std::size_t& at);
  Result<void> read_debt(const Item& item, std::span<const std::int64_t> reply, std::size_t& at);
  void end_debt(const Item& item);
  Result<void> read_item(const Item& item, std::span<const std::int64_t> reply, std::size_t& at);

  const std::string prefix_;
  std::deque<Key> keys_;  // a deque, so that they stay where they are
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<Item> items_;
  std::vector<std::uint16_t> uses_;
  std::size_t requests_ = 0;
  std::size_t decisions_ = 0;
  std::size_t ids_ = 0;  // of permits, which are sent as texts
  std::string name_, ticket_;
  std::string count_, deadline_, runs_, plain_, terms_, numbers_, times_, debts_, asked_;
  struct Named {
    const Key* key;
    std::int64_t cost;
  };
  std::vector<Named> named_;  // keys whose terms are in terms_
  std::vector<std::string_view> texts_, words_;
  std::int64_t now_us_ = 0;
};

}  // namespace weir
