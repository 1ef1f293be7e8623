// A transaction of a Redis client: the commands between MULTI and EXEC, queued in one buffer.
//
// Commands are queued as the bytes of their requests, so EXEC runs them as if they had just arrived. They stay in place
// until the turn that decides them is settled. The number of commands and their bytes are bounded as those of a batch
// over HTTP are. Belongs to one session. Tested by resp_transaction_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "resp/request.h"
#include "resp/writer.h"
#include "server/loop/bounds.h"

namespace weir::server::resp {

class RespTransaction {
 public:
  explicit RespTransaction(const loop::ListenerBounds& bounds) : bounds_(bounds), parser_(bounds.resp()) {}

  // After an error EXEC runs nothing, so the commands are dropped.
  void spoil() {
    is_spoiled_ = true;
    std::string().swap(requests_);
  }
  bool is_spoiled() const { return is_spoiled_; }

  // False if the transaction has no capacity for the command.
  bool add(std::span<const std::string_view> args) {
    if (is_spoiled_) return true;
    if (count_ == bounds_.checks_max) return false;
    weir::resp::append_command(requests_, args);
    ++count_;
    return requests_.size() <= bounds_.checks_body_max();
  }
  std::size_t count() const { return count_; }

  // From EXEC on. The command that next() returns is the same one until pass().
  void run() { is_running_ = true; }
  bool is_running() const { return is_running_; }
  bool has_next() const { return at_ < requests_.size(); }
  std::span<const std::string_view> next() {
    const weir::resp::ParsedRequest request = parser_.parse(std::string_view(requests_).substr(at_));
    size_ = request.consumed;
    return request.args;
  }
  void pass() { at_ += size_; }

  std::size_t held() const { return requests_.capacity(); }

 private:
  const loop::ListenerBounds& bounds_;
  weir::resp::RequestParser parser_;
  std::string requests_;
  std::size_t count_ = 0;
  std::size_t at_ = 0, size_ = 0;  // the next command
  bool is_spoiled_ = false;
  bool is_running_ = false;
};

}  // namespace weir::server::resp
