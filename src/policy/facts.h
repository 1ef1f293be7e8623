// What is known of one request, in the forms that rules compare: its normal path, its client's address, who it is.
//
// Made once a request and found out only when a rule asks. A value is a view of the request or of these facts. One
// thread. Tested by rulebook_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/client_ip.h"
#include "policy/ip_address.h"
#include "policy/path_readings.h"
#include "weir/policy.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kPathBytesMax = 8'192;
inline constexpr std::size_t kRequestAttributesMax = 1'000;  // headers, and entries

// How requests are looked at: the part of a policy that is not rules.
struct Reading {
  PathCase path_case = PathCase::folded;
  ProxyTrust trust{};
};

class Facts {
 public:
  Facts(const Request& request, const Reading& reading);
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  // Why nothing can be said about this request; nothing if it is sound.
  std::optional<Error> refuse() const;

  const Request& request() const { return request_; }
  // By the reading of the target that was chosen last; see policy/path_readings.h. At first by that of normal_path().
  std::string_view path() const { return path_; }
  // How many readings there are: 0 if there are too many to judge.
  std::size_t readings() const { return has_readings_ ? readings_.size() : 1; }
  void choose_reading(std::size_t number);
  std::string_view query() const { return has_readings_ ? query_ : query_of(request_.path); }  // by the same reading
  std::string_view host();
  const IpAddress* ip();  // null if it is not known
  // The hash that a key is known by; only if there is a key.
  const std::array<std::uint8_t, 32>& key_hash();

  // Of the plain kinds, and of the first header, query parameter or entry of that name. Empty if it is not known.
  std::string_view value(AttributeKind kind, std::string_view name);

 private:
  const Request& request_;
  const Reading& reading_;
  std::string path_scratch_, host_scratch_, query_scratch_;
  std::string_view path_, query_;
  bool has_readings_ = false;  // beside that of normal_path()
  std::vector<PathReading> readings_;
  std::optional<IpAddress> peer_;
  std::optional<IpAddress> client_;
  bool has_client_ = false;
  bool has_host_ = false;
  std::string_view host_;
  bool has_key_hash_ = false;
  std::array<std::uint8_t, 32> key_hash_;
};

// Whether a header has this name, which is given in small letters.
bool is_header(std::string_view header, std::string_view name);

}  // namespace weir
