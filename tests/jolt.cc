// See jolt.h. The three functions that schedule_hook.h declares, for programs without a scheduler of their own.

#include "jolt.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

namespace weir::test {

void before_access();
unsigned solo_tries();
unsigned spins();

namespace {

thread_local Jolts current;
thread_local std::uint64_t dice = 1;
std::atomic<bool> is_felt{false};

bool chance(std::uint32_t in) {
  if (in == 0) return false;
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  return dice % in == 0;
}

}  // namespace

void set_jolts(const Jolts& jolts, std::uint64_t seed) {
  current = jolts;
  dice = seed * 0x9e3779b97f4a7c15 | 1;
}

bool are_jolts_felt() { return is_felt; }

void before_access() {
  if (!is_felt.load(std::memory_order_relaxed)) is_felt = true;
  if (chance(current.kill_in)) ::kill(::getpid(), SIGKILL);
  if (chance(current.stop_in)) ::kill(::getpid(), SIGSTOP);
  if (chance(current.yield_in)) ::sched_yield();
}

unsigned solo_tries() { return current.solo_tries; }
unsigned spins() { return current.spins; }

}  // namespace weir::test
