// Copies of charges and requests, with copies of everything they point to. For callers that do not wait for the result,
// and for a call whose caller stopped waiting.
//
// They must stay where they are. One thread at a time. Tested through script_pipeline_test.cc and
// tests/fleet_embed_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/script_call.h"
#include "weir/verdict.h"

namespace weir::fleet {

class KeptCharges {
 public:
  explicit KeptCharges(std::span<const Charge> charges) : charges_(charges.begin(), charges.end()) {
    std::size_t size = 0;
    for (const Charge& charge : charges) size += charge.key.size();
    bytes_.reserve(size);  // so that views into it stay valid
    limits_.reserve(charges.size());
    for (Charge& charge : charges_) {
      const std::size_t at = bytes_.size();
      bytes_.append(charge.key);
      charge.key = std::string_view(bytes_).substr(at);
      if (charge.limit != nullptr) charge.limit = &limits_.emplace_back(*charge.limit);
    }
  }
  KeptCharges(const KeptCharges&) = delete;
  KeptCharges& operator=(const KeptCharges&) = delete;

  std::span<const Charge> all() const { return charges_; }

 private:
  std::string bytes_;
  std::vector<Limit> limits_;
  std::vector<Charge> charges_;
};

class KeptRequest : public ScriptRequest {
 public:
  explicit KeptRequest(const ScriptRequest& request)
      : ScriptRequest(request),
        kept_charges_(request.charges),
        kept_id_(request.id),
        kept_decisions_(request.charges.size()),
        kept_reserved_(request.what == What::commit ? request.charges.size() : 0) {
    charges = kept_charges_.all();
    id = kept_id_;
    ticket_subject = {};
    decisions = kept_decisions_;
    reserved = kept_reserved_;
  }

 private:
  const KeptCharges kept_charges_;
  const std::string kept_id_;
  std::vector<Decision> kept_decisions_;
  std::vector<std::int64_t> kept_reserved_;
};

}  // namespace weir::fleet
