// Parses the JSON bodies of checks: to a key and a limit, or to a request for the rules. An error names the member.
//
//   {"key":"job:7","limit":"10/s burst 50","algorithm":"token_bucket","cost":1,"id":"order-7"}
//   {"user":"42","path":"/api/search","ip":"192.0.2.1","headers":{"x-org":"acme"}}
//
// A limit of its own needs a key. Without both, the rules decide by the request's attributes. Unknown and repeated
// members are errors on purpose: if a misspelt "cost" were ignored, the limit would not be what the caller meant.
// Nothing is copied. Pure; any thread may call it. Tested by check_json_test.cc and fuzz/json_api.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "protocol/json_reader.h"
#include "weir/quota.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::protocol {

inline constexpr std::size_t kJsonAttributesMax = 256;  // of headers, and of entries
inline constexpr std::size_t kIdBytesMax = 64;

// The purpose of a body, which decides the members it may have.
enum class CheckShape : std::uint8_t {
  check,    // a key and a limit, or attributes; optionally an id
  settle,   // the same, and an id
  acquire,  // a key and a limit; optionally an id
  release,  // a key and an id
};

// Views of the body, or of texts that the caller set.
struct CheckItem {
  std::string_view key{}, limit{}, id{};
  std::optional<Algorithm> algorithm{};
  std::int64_t cost = 1;  // 0 peeks, negative refunds
  bool by_rules = false;  // then `key` and `limit` are empty; otherwise the members below are
  std::string_view user{}, api_key{}, ip{}, tenant{}, plan{}, method{}, host{}, path{};
  std::vector<Attribute> headers{}, entries{};

  Request request() const;
  void clear();
};

// parse_check()
//
// Parses a body with one object. Reuse `item` to avoid allocations.
Result<void> parse_check(std::string_view body, CheckShape shape, CheckItem& item, JsonTexts& texts,
                         std::size_t key_max = kKeyBytesMax);

// Parses the checks of a list, {"checks":[...]} or [...], one after the other.
class CheckList {
 public:
  CheckList(std::string_view body, JsonTexts& texts, std::size_t key_max = kKeyBytesMax)
      : json_(body, texts), key_max_(key_max) {}

  // next()
  //
  // Returns whether there is another check. It is in `item`, or its error is in `wrong`. After go_back() to its
  // place, it can be read again. The returned error concerns the whole body.
  Result<bool> next(CheckItem& item, std::optional<Error>& wrong);

  std::size_t place() const { return place_; }  // of the last check
  void go_back(std::size_t place);

 private:
  Result<bool> begin();
  Result<bool> end();
  tl::unexpected<Error> broken() const;

  JsonReader json_;
  std::size_t key_max_;
  std::size_t place_ = 0;
  bool is_first_ = true;
  bool has_begun_ = false;
  bool has_name_ = false;
};

}  // namespace weir::protocol
