// Commands under way to one node, in the order of their replies: a ring of what is awaited, and the bytes of each.
//
// The bytes are kept until the reply is there, in the buffer that they are sent from: a command that is sent elsewhere
// or once more is copied from it, and none costs an allocation of its own. One thread. Tested by queue_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/client.h"

namespace weir::redis {

// What a command is for. All but the first are the client's own.
enum class Purpose : std::uint8_t {
  command,
  hello,
  auth,
  select,
  set_name,
  role,
  load_script,
  subscribe,
  asking,
  ping
};

struct Pending {
  Callback done{};
  Micros deadline = kNever;
  std::size_t bytes = 0;  // of the command
  std::int16_t slot = kAnySlot;
  std::int16_t script = kNoScript;
  Purpose purpose = Purpose::command;
  FaultKind refusal = FaultKind::timeout;  // why it was tried again, if it was
  Reading reading = Reading::value;
  std::uint8_t redirects = 0;
  bool is_pinned = false;    // to its node
  bool wants_late = false;   // what comes of it after its deadline
  bool is_retried = true;    // after TRYAGAIN
  bool is_answered = false;  // its deadline has passed; the reply is dropped
  bool is_reloaded = false;  // its script was loaded for it
};

// A double-ended queue in one block that is used again and again.
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
    first_ = (first_ + 1) & (items_.size() - 1);
    --size_;
  }
  void resize_down(std::size_t size) { size_ = size; }
  void clear() { first_ = size_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : items_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    items_ = std::move(larger);
    first_ = 0;
  }
  std::vector<T> items_;  // a power of two
  std::size_t first_ = 0, size_ = 0;
};

class Queue {
 public:
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::size_t bytes() const { return buffer_.size() - head_; }
  Pending& operator[](std::size_t i) { return entries_[i]; }
  Pending& front() { return entries_.front(); }
  std::string_view front_bytes() { return std::string_view(buffer_).substr(head_, front().bytes); }

  void push(Pending entry, std::span<const std::string_view> words);
  void push_script(Pending entry, std::string_view sha, std::span<const std::string_view> words);
  void push_bytes(Pending entry, std::string_view command);  // as another queue had them
  void pop();
  void clear();

  // What has not left yet.
  std::string_view unsent() const { return std::string_view(buffer_).substr(sent_); }
  bool has_unsent() const { return sent_ < buffer_.size(); }
  bool is_front_sent() const { return !entries_.empty() && sent_ > head_; }
  void note_sent(std::size_t size) { sent_ += size; }

  // Visits all: visit(entry, command, was_sent). It must not change the queue.
  template <class Visit>
  void for_each(const Visit& visit) {
    std::size_t at = head_;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Pending& entry = entries_[i];
      visit(entry, std::string_view(buffer_).substr(at, entry.bytes), sent_ > at);
      at += entry.bytes;
    }
  }

  // Commands that were given up before a byte of them had left need not leave at all.
  void drop_unsent_answered();

 private:
  void append(Pending entry, std::size_t before);

  std::string buffer_;
  std::size_t head_ = 0;  // where the first command begins
  std::size_t sent_ = 0;  // up to here it has left; at least head_
  Ring<Pending> entries_;
};

}  // namespace weir::redis
