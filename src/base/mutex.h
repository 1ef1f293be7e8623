// Mutexes whose use clang checks when it compiles: a guarded member is used only where its mutex is held.
//
//   base::Mutex mutex_;
//   int used_ GUARDED_BY(mutex_) = 0;
//   void add(int n) REQUIRES(mutex_);    // the caller holds mutex_
//   const base::MutexLock lock(mutex_);  // holds it from here to the end of the block
//
// The classes are those of the standard library with attributes for clang's -Wthread-safety, so they cost nothing. A
// MutexLock is a std::unique_lock, and a std::condition_variable can wait with it: in a while loop or, with a time-out,
// with a lambda that has REQUIRES. clang checks no constructors and no destructors. Any thread. Tested by compiling
// with the preset `asan`.
#pragma once

#include <mutex>
#include <shared_mutex>

#ifdef __clang__
#define WEIR_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define WEIR_THREAD_SAFETY(attribute)
#endif
#define CAPABILITY(name) WEIR_THREAD_SAFETY(capability(name))
#define SCOPED_CAPABILITY WEIR_THREAD_SAFETY(scoped_lockable)
#define GUARDED_BY(mutex) WEIR_THREAD_SAFETY(guarded_by(mutex))
#define REQUIRES(...) WEIR_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) WEIR_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define ACQUIRE(...) WEIR_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) WEIR_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) WEIR_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define EXCLUDES(...) WEIR_THREAD_SAFETY(locks_excluded(__VA_ARGS__))

namespace weir::base {

class CAPABILITY("mutex") Mutex : public std::mutex {};

class SCOPED_CAPABILITY MutexLock : public std::unique_lock<std::mutex> {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : unique_lock(mutex) {}
  ~MutexLock() RELEASE() = default;
  void lock() ACQUIRE() { unique_lock::lock(); }
  void unlock() RELEASE() { unique_lock::unlock(); }
};

class CAPABILITY("mutex") SharedMutex : public std::shared_mutex {};

class SCOPED_CAPABILITY ReadLock : public std::shared_lock<std::shared_mutex> {
 public:
  explicit ReadLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : shared_lock(mutex) {}
  ~ReadLock() RELEASE() = default;
};

class SCOPED_CAPABILITY WriteLock : public std::unique_lock<std::shared_mutex> {
 public:
  explicit WriteLock(SharedMutex& mutex) ACQUIRE(mutex) : unique_lock(mutex) {}
  ~WriteLock() RELEASE() = default;
};

}  // namespace weir::base
