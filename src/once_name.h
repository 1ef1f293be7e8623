// The name under which stores remember a request that may be sent twice: its id, bound to what the request charges.
//
//   OnceName name;
//   for (const Charge& charge : charges) name.add(charge.key, charge.cost);
//   store.charge(charges, {.name = name.of(id)});
//
// A client chooses its ids. Bound only to itself, an id that was used for 1 permit would free a request for 1,000, and
// one of a key would free those of another. So a request with the same id and another cost or key is another request.
// A hash stands for what is charged, the same in every run: ids outlive a restart. Pure; one thread. Tested by
// tests/once_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sha256.h"
#include "sized.h"

namespace weir {

class OnceName {
 public:
  void add(std::string_view what, std::int64_t cost) {
    append_sized(charged_, what);
    append_sized(charged_, std::to_string(cost));
  }

  std::string of(std::string_view id) const {
    constexpr std::size_t kHashBytes = 16;  // of a SHA-256: no client finds two costs with the same ones
    const auto hash = sha256(charged_);
    std::string name(hash.begin(), hash.begin() + kHashBytes);
    return name.append(id);
  }

 private:
  std::string charged_;
};

}  // namespace weir
