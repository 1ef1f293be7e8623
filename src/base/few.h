// A fixed-capacity vector with in-place storage, for request paths that must not allocate.
//
// An element is constructed only when it is added. add() without arguments default-initializes it: members without an
// initializer stay uninitialized. One thread. Tested through tests/store_contract_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace weir::base {

template <class T, std::size_t kMost>
class Few {
 public:
  Few() = default;
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;
  ~Few() { clear(); }

  template <class... Args>
  T& add(Args&&... args) {  // the caller makes sure that it fits
    return *std::construct_at(data() + size_++, std::forward<Args>(args)...);
  }
  T& add() { return *::new (static_cast<void*>(data() + size_++)) T; }
  void clear() {
    std::destroy_n(data(), size_);
    size_ = 0;
  }

  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  std::span<T> all() { return {data(), size_}; }
  std::span<const T> all() const { return {data(), size_}; }

 private:
  T* data() { return reinterpret_cast<T*>(bytes_); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_); }

  std::size_t size_ = 0;
  alignas(T) std::byte bytes_[kMost * sizeof(T)];
};

}  // namespace weir::base
