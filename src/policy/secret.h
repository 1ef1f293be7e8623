// Detects a password in a database or Redis address. Configs are shown to many people, so an address must not contain
// one. Pure; any thread may call it. Tested through policy_reader_test.cc.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

inline bool has_password(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == url.npos) return false;
  const std::string_view authority = url.substr(begin + 3, url.find('/', begin + 3) - (begin + 3));
  const std::size_t at = authority.rfind('@');
  return (at != authority.npos && authority.substr(0, at).find(':') != authority.npos) ||
         url.find("password=") != url.npos;
}

}  // namespace weir
