// The attributes of one request in the form that rules compare: normal path, client address, identity.
//
// Built once per request; each attribute is computed when a rule first needs it. A returned view points into the
// request or into this object. One thread may use it. Tested by rulebook_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "policy/client_ip.h"
#include "policy/path_readings.h"
#include "weir/policy.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir::policy {

inline constexpr std::size_t kPathBytesMax = 8'192;
inline constexpr std::size_t kRequestAttributesMax = 1'000;  // of headers, and of entries

// How requests are read: the part of a policy that is not rules.
struct RequestReading {
  PathCase path_case = PathCase::folded;
  ProxyTrust trust{};
};

class Facts {
 public:
  Facts(const Request& request, const RequestReading& reading);
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  // Why this request cannot be checked, or nothing if it is valid.
  std::optional<Error> refuse() const;

  const Request& request() const { return request_; }
  // The path of the reading that was chosen last; see policy/path_readings.h. Initially that of normal_path().
  std::string_view path() const { return path_; }
  // The number of readings of the target. 0 if there are too many to check.
  std::size_t readings() const { return has_readings_ ? readings_.size() : 1; }
  void choose_reading(std::size_t number);
  std::string_view query() const { return has_readings_ ? query_ : query_of(request_.path); }  // of the same reading
  std::string_view host();
  const base::IpAddress* ip();  // null if unknown
  // The SHA-256 of the API key. Only valid if the request has a key.
  const std::array<std::uint8_t, 32>& key_hash();

  // The value of a plain kind, or of the first non-empty header, query parameter or entry of that name. Empty if
  // unknown.
  std::string_view value(weir::AttributeKind kind, std::string_view name);

 private:
  const Request& request_;
  const RequestReading& reading_;
  std::string path_scratch_, host_scratch_, query_scratch_;
  std::string_view path_, query_;
  bool has_readings_ = false;  // other than normal_path()
  std::vector<PathReading> readings_;
  std::optional<base::IpAddress> peer_;
  std::optional<base::IpAddress> client_;
  bool has_client_ = false;
  bool has_host_ = false;
  std::string_view host_;
  bool has_key_hash_ = false;
  std::array<std::uint8_t, 32> key_hash_;
};

// Whether a header has this name. `name` is in lower case.
bool is_header(std::string_view header, std::string_view name);

}  // namespace weir::policy
