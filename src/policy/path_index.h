// Finds which of many path patterns match a path.
//
// Exact patterns are found by one hash of the whole path. The others form a tree of segments. The segments before the
// first `**` are followed from the start of the path, and those after the last `**` from its end. So the length of
// the path does not matter. A pattern with a second `**` is then matched in full. Whatever the patterns and paths
// are, find() visits no tree node twice and matches no pattern twice. One thread fills the index; after finish(), any
// thread may call find(). Tested by path_index_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/path_pattern.h"

namespace weir::policy {

// A pattern that matches: the id it was added under, and its number in the order of add(). The members are not
// zero-initialized, because each request would pay for 64 of them.
struct PathHit {
  std::uint32_t id;
  std::uint32_t pattern;
  friend auto operator<=>(const PathHit&, const PathHit&) = default;
};

// PathHits
//
// The results of find(). Up to kInline hits need no heap memory. Beyond that the memory is kept for reuse, so an
// object that is reused soon stops allocating.
class PathHits {
 public:
  static constexpr std::size_t kInline = 64;

  PathHits() {}  // NOLINT: unused hits are not initialized

  void add(PathHit hit) {
    if (size_ < kInline) {
      inline_[size_++] = hit;
    } else {
      add_beyond(hit);
    }
  }
  void clear() { size_ = 0; }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const PathHit* begin() const { return size_ <= kInline ? inline_.data() : beyond_.data(); }
  const PathHit* end() const { return begin() + size_; }
  const PathHit& operator[](std::size_t i) const { return begin()[i]; }

 private:
  void add_beyond(PathHit hit);

  std::size_t size_ = 0;
  std::array<PathHit, kInline> inline_;
  std::vector<PathHit> beyond_;  // all hits, once there are more than kInline
};

// Hashes a path under the seed of an index. Fast, and hard to attack as long as the seed is secret.
std::uint64_t path_hash(std::uint64_t seed, std::string_view bytes);

class PathIndex {
 public:
  // Several patterns may share an id, and one pattern may have several ids.
  void add(const PathPattern& pattern, std::uint32_t id);
  void finish();                    // once, after the last add()
  void finish(std::uint64_t seed);  // the same with a given seed, for tests

  // find()
  //
  // Appends every matching pattern once, in no particular order. The path must come from normal_path() with the
  // PathCase of the patterns. If memory runs out beyond PathHits::kInline hits, the program terminates.
  void find(std::string_view normal_path, PathHits& out) const noexcept;

  std::size_t size() const { return size_; }

 private:
  using Number = std::uint32_t;
  using Key = std::pair<Number, std::string>;  // a node and the bytes that lead on from it; node 0 stores whole paths
  using Entries = std::map<Key, std::vector<Number>>;

  // Maps a node and bytes to numbers. Open addressing; each record is contiguous in words_.
  class Table {
   public:
    void build(const Entries& entries, std::uint64_t seed);
    std::span<const Number> find(Number node, std::string_view bytes) const;
    bool empty() const { return words_.empty(); }

   private:
    struct Slot {
      std::uint32_t tag = 0;
      std::uint32_t at = 0;  // in words_; 0 marks a free slot
    };
    // A record in words_: node, length, number of values, the values, the bytes.
    static constexpr std::size_t kHeadWords = 3;

    std::uint64_t hash(Number node, std::string_view bytes) const;
    std::string_view bytes_at(std::size_t at) const;

    std::uint64_t seed_ = 0, mask_ = 0;
    std::size_t length_max_ = 0;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> words_;
  };

  static constexpr Number kNone = 0;  // no edge leads to this node
  static constexpr Number kRoot = 1;

  struct Hit {
    PathHit hit{};
    Number question = 0;  // which of questions_ must match too, counted from 1; 0 if none
  };
  struct Node {
    Number any = kNone;   // edge by * or {name}
    Number rest = kNone;  // edge by **: below that node, segments are taken from the end of the path
    Number has_literals = 0;
    Number globs_first = 0, globs_end = 0;
    Number hits_first = 0, hits_end = 0;
  };
  struct GlobEdge {
    Number from, to;
    PathSegment glob;
  };
  struct NodeHit {
    Number node;
    Hit hit;
  };
  // Data that is needed only until finish().
  struct Draft {
    Entries paths, literals;
    std::map<Key, Number> globs;
    std::vector<NodeHit> hits;
  };

  Number new_node();
  Number child_of(Number node, const PathSegment& segment);
  void follow(Number node, std::string_view path, std::string_view rest, PathHits& out) const;
  void follow_back(Number node, std::string_view path, std::string_view rest, PathHits& out) const;
  void report(const Node& node, std::string_view path, PathHits& out) const;

  template <class Next>
  void each_child(const Node& node, Number number, std::string_view segment, Next&& next) const;

  Draft draft_;
  bool is_finished_ = false;
  std::size_t size_ = 0;
  Table paths_, literals_;
  std::vector<Node> nodes_;
  std::vector<GlobEdge> globs_;
  std::vector<Hit> hits_;
  std::vector<PathPattern> questions_;
};

}  // namespace weir::policy
