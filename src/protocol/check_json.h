// The bodies of checks: JSON text -> a key and a limit, or a request for the rules, or an error that names the member.
//
//   {"key":"job:7","limit":"10/s burst 50","algorithm":"token_bucket","cost":1,"id":"order-7"}
//   {"user":"42","path":"/api/search","ip":"192.0.2.1","headers":{"x-org":"acme"}}
//
// A limit of its own needs a key; without both, the rules decide by what is known of the request. Strict on purpose: an
// unknown or repeated member is an error, because a misspelt "cost" that is ignored would be a limit that does not
// hold. Nothing is copied. Pure; any thread. Tested by check_json_test.cc and fuzz/json_api.cc.
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

namespace weir {

inline constexpr std::size_t kJsonAttributesMax = 256;  // headers, and entries
inline constexpr std::size_t kIdBytesMax = 64;

// What a body is for decides which members it has.
enum class CheckShape : std::uint8_t {
  check,    // a key and a limit, or attributes; an id if it likes
  settle,   // the same, and an id
  acquire,  // a key, a limit, an id if it likes
  release,  // a key and an id
};

// Views of the body, or of the texts that were given beside it.
struct CheckItem {
  std::string_view key{}, limit{}, id{};
  std::optional<Algorithm> algorithm{};
  std::int64_t cost = 1;  // 0 peeks, negative gives back
  bool by_rules = false;  // then `key` and `limit` are empty, else what follows is
  std::string_view user{}, api_key{}, ip{}, tenant{}, plan{}, method{}, host{}, path{};
  std::vector<Attribute> headers{}, entries{};

  Request request() const;
  void clear();
};

// parse_check()
//
// A body of one object. `item` is used again for its room.
Result<void> parse_check(std::string_view body, CheckShape shape, CheckItem& item, JsonTexts& texts,
                         std::size_t key_max = kKeyBytesMax);

// The body of several checks, {"checks":[...]} or [...], one after the other.
class CheckList {
 public:
  CheckList(std::string_view body, JsonTexts& texts, std::size_t key_max = kKeyBytesMax)
      : json_(body, texts), key_max_(key_max) {}

  // next()
  //
  // Whether there is another, which is then in `item`, or what is wrong with it in `wrong`. It may be asked again, with
  // go_back() to its place. An error is one of the whole body.
  Result<bool> next(CheckItem& item, std::optional<Error>& wrong);

  std::size_t place() const { return place_; }  // of the last one
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

}  // namespace weir
