// Commands to one node in the order of their replies: a ring of entries, and the bytes of each command.
//
// The bytes stay in the send buffer until the reply arrives. To redirect or resend a command, its bytes are copied
// from there, so no command needs an allocation of its own. One thread may use it. Tested by queue_test.cc.
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

// The purpose of a command. All except the first are the client's own commands.
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
  FaultKind refusal = FaultKind::timeout;  // why it was retried last, if it was
  Reading reading = Reading::value;
  std::uint8_t redirects = 0;
  bool is_pinned = false;    // must go to its node
  bool wants_late = false;   // its outcome after the deadline
  bool is_retried = true;    // after TRYAGAIN
  bool is_answered = false;  // its deadline has passed; the reply is dropped
  bool is_reloaded = false;  // its script was reloaded for it
};

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
  std::vector<T> items_;  // size is a power of two
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
  void push_bytes(Pending entry, std::string_view command);  // encoded as in another queue
  void pop();
  void clear();

  // The bytes that have not been sent.
  std::string_view unsent() const { return std::string_view(buffer_).substr(sent_); }
  bool has_unsent() const { return sent_ < buffer_.size(); }
  bool is_front_sent() const { return !entries_.empty() && sent_ > head_; }
  void note_sent(std::size_t size) { sent_ += size; }

  // Calls visit(entry, command, was_sent) for each command. `visit` must not change the queue.
  template <class Visit>
  void for_each(const Visit& visit) {
    std::size_t at = head_;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Pending& entry = entries_[i];
      visit(entry, std::string_view(buffer_).substr(at, entry.bytes), sent_ > at);
      at += entry.bytes;
    }
  }

  // Removes commands that were answered before any of their bytes was sent.
  void drop_unsent_answered();

 private:
  void append(Pending entry, std::size_t before);

  std::string buffer_;
  std::size_t head_ = 0;  // start of the first command
  std::size_t sent_ = 0;  // end of the sent bytes; at least head_
  Ring<Pending> entries_;
};

}  // namespace weir::redis
