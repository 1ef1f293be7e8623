// One question on its way to Redis and back. It owns copies of all its arguments, because the caller may have
// returned before the reply arrives.
//
// A Lane (lane.h) creates and reuses it. The caller fills in the question and the callback. From then on the lane
// owns it until it has called `on_done`. One thread at a time. Tested through tests/fleet_nodes_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/doubt.h"
#include "fleet/script_call.h"
#include "weir/verdict.h"

namespace weir {

struct Ask;

// Write-backs that share a call share one ticket: Redis applies all of them or none.
struct SharedTicket {
  std::shared_ptr<const std::string> id{};  // null: the write-back has its own ticket
  std::uint16_t place = 0, count = 0;       // among the write-backs that share it
};

// The caller of a question. Its callback runs on the lane's thread, once per question.
class Asker {
 public:
  virtual void on_done(Ask& ask) = 0;

 protected:
  ~Asker() = default;
};

struct Ask {
  enum class State : std::uint8_t {
    answered,  // the answer is in `request`
    failed,    // not sent, or no reply in time
    refused,   // Redis replied with an error: `error`
  };

  // The question, as copies. They do not move, so `request` can point to them.
  std::string bytes{};
  std::vector<Limit> limits{};
  std::vector<Charge> charges{};
  std::vector<Decision> decisions{};
  std::vector<std::int64_t> reserved{};
  ScriptRequest request{};

  int slot = -1;                   // of a cluster
  std::uint64_t server = 0;        // the server that has it, by the lane's numbering
  Micros deadline{0};              // monotonic
  bool is_retried = false;         // after a refusal that taught us the server's time
  bool is_alone = false;           // shares its call with no other: the server refused a shared call
  bool is_tied = false;            // goes in the same call as the next question
  std::string_view own_id{};       // of the question; `request` may have the id of a shared ticket
  SharedTicket shared{};           // of a write-back that was sent
  std::int64_t decided_us = 0;     // by the server's clock
  bool is_in_doubt = false;        // it failed, but the server may have executed it
  std::shared_ptr<Doubt> doubt{};  // of that call, if its outcome may still become known

  State state = State::failed;
  std::string error{};
  Asker* asker = nullptr;
  void* mark = nullptr;  // for the asker's use

  // fill()
  //
  // Starts a new question. Copies `charges` and everything they point to.
  void fill(ScriptRequest::What what, std::span<const Charge> asked, std::string_view id = {}, Micros lasts = Micros{0},
            std::int64_t charged_us = 0) {
    std::size_t size = id.size();
    for (const Charge& charge : asked) size += charge.key.size();
    bytes.clear();
    bytes.reserve(size);  // so that views into it stay valid
    limits.clear();
    limits.reserve(asked.size());
    charges.assign(asked.begin(), asked.end());
    for (Charge& charge : charges) {
      charge.key = keep(charge.key);
      if (charge.limit != nullptr) charge.limit = &limits.emplace_back(*charge.limit);
    }
    decisions.assign(asked.size(), {});
    reserved.assign(what == ScriptRequest::What::commit ? asked.size() : 0, 0);
    own_id = keep(id);
    shared = {};
    request = {.what = what,
               .charges = charges,
               .id = own_id,
               .lasts = lasts,
               .charged_us = charged_us,
               .decisions = decisions,
               .reserved = reserved};
    is_retried = is_alone = is_tied = is_in_doubt = false;
    doubt.reset();
    state = State::failed;
    error.clear();
  }

 private:
  std::string_view keep(std::string_view text) {
    const std::size_t at = bytes.size();
    bytes.append(text);
    return std::string_view(bytes).substr(at, text.size());
  }
};

}  // namespace weir
