// What a node let through while Redis could not be asked, until it has been written back there.
//
// Bounded: beyond so many keys, what is let through is only counted. Names are those of key_name.h. To add is to write
// a line into one of several short lists, each behind a lock that hardly anybody else wants; whoever looks enters the
// lines into the book, and tidy() is for those who have the time. Any thread. Tested by owed_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fleet/key_name.h"
#include "weir/verdict.h"

namespace weir {

// What was still spent of a key on this node, at some time of the monotonic clock.
struct Spent {
  std::int64_t most = INT64_MAX;
  Micros at{0};
};

struct Debt {
  std::string name{};
  Limit limit{};  // the whole one
  std::int64_t cost = 0;
  Micros until{0};  // monotonic: from then on it has been recovered from
  Spent spent{};

  std::string_view key() const { return std::string_view(name).substr(1); }
};

class Owed {
 public:
  // `on_full` is called when there is something to tidy; by whoever adds, so it is quick.
  explicit Owed(std::size_t keys_max, std::function<void()> on_full = {})
      : keys_max_(keys_max), on_full_(std::move(on_full)) {}
  Owed(const Owed&) = delete;
  Owed& operator=(const Owed&) = delete;

  // No more is owed than is still spent, whatever was let through: the rest has been recovered from, as it would have
  // in Redis. Of what several threads say the latest counts.
  void add(const KnownKey& key, const Limit& limit, std::int64_t cost, Micros until, Spent spent = {});
  void forget(std::string_view name);

  // Of one key, unless it has been recovered from.
  std::int64_t cost_of(std::string_view name, Micros now);
  // Some of them, taken out.
  std::vector<Debt> take(std::size_t most);

  std::size_t size();  // keys
  // False if there may be any, but for those that were taken. Costs nothing.
  bool is_empty() const { return !has_lines_.load() && keys_.load() == 0; }
  // Enters full lists.
  void tidy();
  std::uint64_t lost();

 private:
  static constexpr std::size_t kDesks = 16;
  static constexpr std::size_t kLinesMax = 1'024;  // so that a list stays in the cache
  static constexpr std::size_t kRecent = 1'024;
  static constexpr std::size_t kFullMax = 16;  // lists; whoever has one more enters them

  struct Line {
    KeyMark mark{};
    std::uint32_t name_size = 0;
    std::uint32_t limit = 0;  // of limits
    std::int64_t cost = 0;
    Micros until{0};
    Spent spent{};
  };
  struct List {
    std::vector<Line> lines;
    std::vector<Limit> limits;
    std::string names;                            // of all lines, one behind the other
    std::array<std::uint16_t, kRecent> recent{};  // by its mark, where a key may stand: most that come have come before

    bool add_to_known(KeyMark mark, std::int64_t cost, Micros until, Spent spent, const Limit& limit);
    void clear();
  };
  struct alignas(64) Desk {
    std::mutex mutex;
    List list;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  bool put_aside(List& list);
  void swap_for_empty(List& list);
  void use_again(List& list);
  void enter_all();
  void enter(const List& list);
  void enter(std::string_view name, const Line& line, const Limit& limit);

  const std::size_t keys_max_;
  const std::function<void()> on_full_;
  std::array<Desk, kDesks> desks_;  // a thread writes at one of them
  std::mutex lists_mutex_;          // guards the lists that are full, and those that can be used again
  std::vector<List> full_, spare_;
  std::atomic<bool> has_lines_{false};  // may have
  std::atomic<std::size_t> keys_{0};    // in the book
  std::mutex mutex_;                    // guards what follows
  std::uint64_t lost_ = 0;
  std::vector<std::string> given_back_;  // names that were entered by a cost below 0: what it is of may come yet
  std::unordered_map<std::string, Debt, Hash, std::equal_to<>> book_;
};

}  // namespace weir
