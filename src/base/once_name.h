// The name under which stores remember an idempotent request: its id, bound to what the request charges.
//
//   OnceName name;
//   for (const Charge& charge : charges) name.add(charge.key, charge.cost);
//   store.charge(charges, {.name = name.of(id)});
//
// Clients choose their ids. Without the binding, an id used for 1 permit would free a request for 1,000, and an id
// used with one key would free requests of another key. So the same id with another cost or key is another request.
// The name contains a hash of the charges that is the same in every run, because ids outlive a restart. Pure; one
// thread. Tested by tests/once_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "base/text.h"

namespace weir::base {

class OnceName {
 public:
  void add(std::string_view what, std::int64_t cost) {
    append_sized(charged_, what);
    append_sized(charged_, std::to_string(cost));
  }

  std::string of(std::string_view id) const {
    constexpr std::size_t kHashBytes = 16;  // of SHA-256; a client cannot find two sets of charges with equal ones
    const auto hash = sha256(charged_);
    std::string name(hash.begin(), hash.begin() + kHashBytes);
    return name.append(id);
  }

 private:
  std::string charged_;
};

}  // namespace weir::base
