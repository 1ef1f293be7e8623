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
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "table/transaction.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::fleet {

// Bounds of one call, so that it does not block Redis for long.
inline constexpr std::size_t kScriptKeysMax = 128;
inline constexpr std::size_t kScriptDecisionsMax = 512;

class Doubt;
struct ScriptRequest;

// Receives the results of requests, each once, on the thread of the pipeline.
class Requester {
 public:
  virtual void on_done(ScriptRequest& request) = 0;

 protected:
  ~Requester() = default;
};

// Write-backs that share a call share one ticket: Redis applies all of them or none.
struct SharedTicket {
  std::shared_ptr<const std::string> id{};  // null: the write-back has its own ticket
  std::uint16_t place = 0, count = 0;       // among the write-backs that share it
};

// One request and its result, from the store (fleet_store.h) to the bytes of a call. Nothing is copied on the way:
// whatever it points to must stay valid, and it must stay where it is, until the result is there.
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
  enum class State : std::uint8_t {
    answered,  // by Redis
    failed,    // not sent, or no reply in time
    refused,   // Redis replied with an error: `error`
  };

  What what = What::charge;
  std::span<const Charge> charges{};  // each key once; in a cluster, of one subject
  std::string_view id{};              // of the request, the reservation or the permits
  Micros lasts{0};                    // once, reserve, write_back
  std::string_view ticket_subject{};  // write_back: several in one call may share an id; empty: that of the first key
  std::int64_t charged_us = 0;        // undo: a time of Redis's clock
  std::span<Decision> decisions{};
  std::span<std::int64_t> reserved{};  // commit
  bool may_split = false;              // if its keys are on two servers, it fails at once, and is sent in parts
  bool is_tied = false;                // goes in the same call as the next request, right before it

  // The result. ScriptCall fills in `ruling`, `has_no_state`, `decisions` and `reserved`; the pipeline fills in the
  // rest.
  table::Ruling ruling = table::Ruling::denied;
  bool has_no_state = false;  // the value at the key is not of this version: nothing was decided
  State state = State::failed;
  bool is_in_doubt = false;        // it failed, but the server may have executed it
  bool is_torn = false;            // it failed because its slot migrates: its keys may be on two servers
  std::shared_ptr<Doubt> doubt{};  // of that call, if its outcome may still become known; see Doubt::decide()
  SharedTicket shared{};           // of a write-back that was sent
  std::int64_t decided_us = 0;     // by the server's clock
  std::string error{};

  // For the pipeline, while it is in flight.
  Requester* requester = nullptr;
  int slot = -1;             // of a cluster
  std::uint64_t server = 0;  // the server that has it, by the pipeline's numbering
  Micros deadline{0};        // monotonic
  bool is_retried = false;   // Redis refused it as late, and it was sent again
  bool is_alone = false;     // shares its call with no other: the server refused a shared call

  // For the call. A run is several equal requests for one key; its first one stands for all of them.
  ScriptRequest* next = nullptr;  // in the run
  ScriptRequest* last = nullptr;  // of the run, like what follows
  std::uint16_t times = 1;
  std::uint32_t keys_at = 0;  // in uses_: the keys of its charges, then of its tickets
  bool is_run = false;        // alone with its key, whose number describes it fully
  bool is_with_runs = false;  // a write-back whose keys are runs

  // The same request about other charges, not sent yet.
  ScriptRequest about(std::span<const Charge> others) const {
    return {.what = what, .charges = others, .id = id, .lasts = lasts};
  }
  // The error that the caller gets if the state is `refused`.
  tl::unexpected<Error> refusal() const { return fail(ErrorCode::unavailable, "Redis refused the request: " + error); }
};
using What = ScriptRequest::What;
using State = ScriptRequest::State;
using table::Ruling;

// Whether the request takes permits, all or none.
constexpr bool takes_permits(What what) { return what == What::charge || what == What::once || what == What::reserve; }

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
  // Copies take the place of the requests, in the order of add(): their caller no longer waits.
  void replace(std::span<ScriptRequest* const> requests, std::span<ScriptRequest* const> copies);

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
    std::size_t run = kNone;      // the last item, if equal ones can join it
    std::uint32_t uses = 0;       // by items
    bool has_write_back = false;  // one of them is a write-back sent along with a run
    bool is_separate = false;     // of a ticket: one of its write-backs cannot be sent with the runs
    std::uint16_t number = 0;
  };
  bool fits(const ScriptRequest& request);
  std::size_t place_of(char mark, std::string_view subject, std::string_view key, const Limit* limit);
  bool join_run(ScriptRequest& request, std::size_t key);
  void name_ticket(std::string_view id, const Charge& charge);
  std::size_t use(std::size_t key);
  bool can_be_run(const Key& key) const;
  bool can_go_with_runs(std::size_t place) const;
  Key& ticket_of(const ScriptRequest& item) { return keys_[uses_[item.keys_at + item.charges.size()]]; }
  void find_runs();
  std::span<const std::uint16_t> keys_of(const ScriptRequest& item) const;
  void append_runs(std::uint16_t& number, std::int64_t now_us);
  void append_write_backs(std::uint16_t& number, std::int64_t now_us);
  void append_key(Key& key, std::uint16_t number, std::int64_t cost, std::int64_t now_us);
  void append_terms(const Key& key, std::int64_t cost, std::int64_t now_us);
  void append_item(const ScriptRequest& item);
  Result<void> read_run(ScriptRequest& item, std::span<const std::int64_t> reply, std::size_t& at);
  Result<void> read_tickets(std::span<const std::int64_t> reply, std::size_t& at);
  Result<void> read_write_back(ScriptRequest& item, std::span<const std::int64_t> reply, std::size_t& at);
  void finish_write_back(const ScriptRequest& item);
  Result<void> read_item(ScriptRequest& item, std::span<const std::int64_t> reply, std::size_t& at);

  const std::string prefix_;
  std::deque<Key> keys_;  // a deque, so that they stay where they are
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<ScriptRequest*> items_;  // of each run, the first
  std::vector<std::uint16_t> uses_;
  std::size_t requests_ = 0;
  std::size_t decisions_ = 0;
  std::size_t ids_ = 0;  // of permits, which are sent as texts
  std::string name_, ticket_;
  std::string count_, deadline_, runs_, plain_, terms_, numbers_, times_, write_backs_, asked_;
  struct Named {
    const Key* key;
    std::int64_t cost;
  };
  std::vector<Named> named_;  // keys whose terms are in terms_
  std::vector<std::string_view> texts_, words_;
  std::int64_t now_us_ = 0;
};

}  // namespace weir::fleet
