// A cache of the compiled limits that checks send, by their text.
//
// Most requests of a client have the same limit, and compiling a calendar limit reads the time zone's file, for which
// no request should wait.
//
// The cache keeps errors too, since finding the nearest valid text takes time. It does not keep the error of a zone
// file that could not be read, because the next request may find the file. The size is bounded: a text that is too long
// for a limit is refused and not kept. When the cache is full, it is cleared between two requests. Belongs to one
// loop and its thread. Tested by inline_limits_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text_map.h"
#include "weir/limit.h"

namespace weir::server::loop {

class InlineLimits {
 public:
  static constexpr std::size_t kMost = 1'024;
  static constexpr std::size_t kBytesMax = 256;  // of a text

  // Earlier results of compile() become invalid.
  void begin_request() {
    if (size_ < most_) return;
    for (Limits& limits : limits_) limits.clear();
    size_ = 0;
    last_ = nullptr;
  }

  // A limit is valid until the next request begins; an error may be valid only until the next call.
  const Result<Limit>& compile(std::string_view text, std::optional<Algorithm> algorithm) {
    if (text.size() > kBytesMax) return passing_ = too_long(text.size());
    const std::size_t kind = algorithm ? 1 + static_cast<std::size_t>(*algorithm) : 0;
    if (last_ != nullptr && last_kind_ == kind && last_->first == text) return last_->second;
    Limits& limits = limits_[kind];
    auto found = limits.find(text);
    if (found == limits.end()) {
      auto limit = weir::compile(text, algorithm);
      if (!limit && limit.error().code == ErrorCode::unavailable) return passing_ = std::move(limit);
      found = limits.emplace(text, std::move(limit)).first;
      ++size_;
    }
    last_ = &*found;
    last_kind_ = kind;
    return found->second;
  }

  std::size_t size() const { return size_; }
  // Sets a smaller capacity where there are many caches.
  void set_most(std::size_t most) { most_ = most; }

 private:
  static Result<Limit> too_long(std::size_t size) {
    return fail(ErrorCode::out_of_range, "the limit has " + std::to_string(size) + " bytes; at most " +
                                             std::to_string(kBytesMax) + " are allowed");
  }

  using Limits = base::TextMap<Result<Limit>>;

  std::array<Limits, 1 + std::size(kAlgorithms)> limits_;  // without an algorithm, and one for each
  std::size_t size_ = 0, most_ = kMost;
  const Limits::value_type* last_ = nullptr;
  std::size_t last_kind_ = 0;
  Result<Limit> passing_{};  // an error that is not cached
};

}  // namespace weir::server::loop
