// Commands to one node in the order of their replies: a ring of entries, and the bytes of each command.
//
// The bytes stay in the send buffer until the reply arrives. To redirect or resend a command, its bytes are copied
// from there, so no command needs an allocation of its own. One thread may use it. Tested by queue_test.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/command.h"
#include "resp/writer.h"
#include "weir/result.h"

namespace weir::redis {

// A double-ended queue in one reused block of memory.
template <class T>
class Ring {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return items_[(first_ + i) & (items_.size() - 1)]; }
  const T& operator[](std::size_t i) const { return items_[(first_ + i) & (items_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  void push_back(T item) {
    if (size_ == items_.size()) grow();
    (*this)[size_++] = std::move(item);
  }
  void pop_front() {
    WEIR_ASSERT(size_ > 0);
    first_ = (first_ + 1) & (items_.size() - 1);
    --size_;
  }
  void resize_down(std::size_t size) {
    WEIR_ASSERT(size <= size_);
    size_ = size;
  }
  void clear() { first_ = size_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : items_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    items_ = std::move(larger);
    WEIR_ASSERT(std::has_single_bit(items_.size()));
    first_ = 0;
  }
  std::vector<T> items_;
  std::size_t first_ = 0, size_ = 0;
};

class Queue {
 public:
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::size_t bytes() const { return buffer_.size() - head_; }
  Command& operator[](std::size_t i) { return entries_[i]; }
  Command& front() { return entries_.front(); }
  std::string_view front_bytes() { return std::string_view(buffer_).substr(head_, front().bytes); }

  void push(Command entry, std::span<const std::string_view> words) {
    const std::size_t before = buffer_.size();
    resp::append_command(buffer_, words);
    append(entry, before);
  }
  void push_script(Command entry, std::string_view sha, std::span<const std::string_view> words) {
    const std::size_t before = buffer_.size();
    resp::Writer writer(buffer_);
    writer.array(words.size() + 2);
    writer.bulk("EVALSHA");
    writer.bulk(sha);
    for (const std::string_view word : words) writer.bulk(word);
    append(entry, before);
  }
  // Takes bytes that another queue has encoded.
  void push_bytes(Command entry, std::string_view command) {
    const std::size_t before = buffer_.size();
    buffer_.append(command);
    append(entry, before);
  }
  void pop() {
    head_ += entries_.front().bytes;
    WEIR_ASSERT(head_ <= buffer_.size());
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
  void clear() {
    buffer_.clear();
    entries_.clear();
    head_ = sent_ = 0;
  }

  // The bytes that have not been sent.
  std::string_view unsent() const { return std::string_view(buffer_).substr(sent_); }
  bool has_unsent() const { return sent_ < buffer_.size(); }
  bool is_front_sent() const { return !entries_.empty() && sent_ > head_; }
  void note_sent(std::size_t size) {
    sent_ += size;
    WEIR_ASSERT(sent_ <= buffer_.size());
  }

  // Calls visit(entry, command, was_sent) for each command.
  template <class Visit>
  void for_each(const Visit& visit) {
    const std::size_t end = buffer_.size();
    std::size_t at = head_;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Command& entry = entries_[i];
      visit(entry, std::string_view(buffer_).substr(at, entry.bytes), sent_ > at);
      at += entry.bytes;
    }
    WEIR_ASSERT(at == end && buffer_.size() == end);  // `visit` has not changed the queue
  }

  // Removes commands that were answered before any of their bytes was sent.
  void drop_unsent_answered() {
    std::size_t from = head_, to = head_, kept = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Command entry = entries_[i];
      const bool is_dropped = entry.is_answered && from >= sent_;
      if (!is_dropped) {
        if (to != from) std::memmove(buffer_.data() + to, buffer_.data() + from, entry.bytes);
        entries_[kept++] = entry;
        to += entry.bytes;
      }
      from += entry.bytes;
    }
    WEIR_ASSERT(sent_ <= to);
    entries_.resize_down(kept);
    buffer_.resize(to);
  }

 private:
  void append(Command entry, std::size_t before) {
    entry.bytes = buffer_.size() - before;
    entries_.push_back(entry);
  }

  static constexpr std::size_t kIdleBytes = std::size_t{64} << 10;  // unused at the front, before the rest is moved

  std::string buffer_;
  std::size_t head_ = 0;  // start of the first command
  std::size_t sent_ = 0;  // end of the sent bytes; at least head_
  Ring<Command> entries_;
};

}  // namespace weir::redis
