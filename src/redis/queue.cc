// Appends and removes commands, and bounds the unused part of the buffer. See queue.h.
#include "redis/queue.h"

#include <cstring>

#include "resp/writer.h"

namespace weir::redis {
namespace {

constexpr std::size_t kIdleBytes = std::size_t{64} << 10;  // unused bytes at the front before the rest is moved

}  // namespace

void Queue::push(Pending entry, std::span<const std::string_view> words) {
  const std::size_t before = buffer_.size();
  resp::append_command(buffer_, words);
  append(entry, before);
}

void Queue::push_script(Pending entry, std::string_view sha, std::span<const std::string_view> words) {
  const std::size_t before = buffer_.size();
  resp::Writer writer(buffer_);
  writer.array(words.size() + 2);
  writer.bulk("EVALSHA");
  writer.bulk(sha);
  for (const std::string_view word : words) writer.bulk(word);
  append(entry, before);
}

void Queue::push_bytes(Pending entry, std::string_view command) {
  const std::size_t before = buffer_.size();
  buffer_.append(command);
  append(entry, before);
}

void Queue::append(Pending entry, std::size_t before) {
  entry.bytes = buffer_.size() - before;
  entries_.push_back(entry);
}

void Queue::pop() {
  head_ += entries_.front().bytes;
  if (sent_ < head_) sent_ = head_;
  entries_.pop_front();
  if (head_ == buffer_.size()) {
    buffer_.clear();
    head_ = sent_ = 0;
  } else if (head_ > kIdleBytes && head_ > buffer_.size() / 2) {
    buffer_.erase(0, head_);
    sent_ -= head_;
    head_ = 0;
  }
}

void Queue::clear() {
  buffer_.clear();
  entries_.clear();
  head_ = sent_ = 0;
}

void Queue::drop_unsent_answered() {
  std::size_t from = head_, to = head_, kept = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Pending entry = entries_[i];
    const bool is_dropped = entry.is_answered && from >= sent_;
    if (!is_dropped) {
      if (to != from) std::memmove(buffer_.data() + to, buffer_.data() + from, entry.bytes);
      entries_[kept++] = entry;
      to += entry.bytes;
    }
    from += entry.bytes;
  }
  entries_.resize_down(kept);
  buffer_.resize(to);
}

}  // namespace weir::redis
