// See schedule.h. The scheduler's state is global because the table calls before_access() from everywhere.

#include "schedule.h"

#include <ucontext.h>

#include "schedule_hook.h"

namespace weir::test {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr unsigned kLimitsAll = 4092;
constexpr std::uint64_t kOperationMax = 400'000, kTestMax = 20'000'000;

struct Killed {};

ucontext_t test_context;
std::uint64_t now = 0;  // accesses in all
std::uint64_t outside = 0;
unsigned solo = 2;
unsigned pauses = 0;
unsigned limits_given = kLimitsAll;
bool stuck = false;

}  // namespace

struct Schedule::Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  std::function<void()> work;
  bool over = true;
  bool begun = false;
  bool dying = false;
  std::uint64_t left = 0;   // accesses until the next switch
  std::uint64_t spent = 0;  // since it began its operation

  static inline Fiber* running = nullptr;

  static void main() {
    Fiber* self = running;
    self->begun = true;
    try {
      self->work();
    } catch (const Killed&) {
    } catch (const NeverEnds&) {
      stuck = true;
    }
    self->over = true;
    ::swapcontext(&self->context, &test_context);
  }

  void resume() {
    running = this;
    ::swapcontext(&test_context, &context);
    running = nullptr;
  }

  void access() {
    while (left == 0) {
      running = nullptr;
      ::swapcontext(&context, &test_context);
      running = this;
    }
    if (dying) throw Killed{};
    if (++spent > kOperationMax) throw NeverEnds("an operation never ends");
    --left;
    ++now;
  }
};

void before_access() {
  if (pauses > 0) return;
  if (Schedule::Fiber::running != nullptr) return Schedule::Fiber::running->access();
  if (++outside > kTestMax) throw NeverEnds("the test itself never ends");
}

unsigned solo_tries() { return solo; }
unsigned spins() { return 0; }  // only time would be lost
unsigned limits() { return limits_given; }

FewLimits::FewLimits(unsigned count) { limits_given = count; }
FewLimits::~FewLimits() { limits_given = kLimitsAll; }

Schedule::Schedule() {
  for (auto& fiber : fibers_) fiber = std::make_unique<Fiber>();
}

Schedule::~Schedule() { reset(solo); }

void Schedule::reset(unsigned solo_tries) {
  for (std::size_t i = 0; i < kFibers; ++i) kill(i);
  now = outside = 0;
  stuck = false;
  solo = solo_tries;
}

void Schedule::start(std::size_t i, std::function<void()> work) {
  Fiber& fiber = *fibers_[i];
  fiber.work = std::move(work);
  fiber.over = fiber.begun = fiber.dying = false;
  fiber.left = fiber.spent = 0;
  ::getcontext(&fiber.context);
  fiber.context.uc_stack = {.ss_sp = fiber.stack.get(), .ss_flags = 0, .ss_size = kStackBytes};
  fiber.context.uc_link = nullptr;
  ::makecontext(&fiber.context, &Fiber::main, 0);
}

bool Schedule::is_over(std::size_t fiber) const { return fibers_[fiber]->over; }

std::uint64_t Schedule::run(std::size_t i, std::uint64_t accesses) {
  Fiber& fiber = *fibers_[i];
  if (fiber.over) return 0;
  fiber.left = accesses;
  fiber.resume();
  return accesses - fiber.left;
}

void Schedule::kill(std::size_t i) {
  Fiber& fiber = *fibers_[i];
  if (!fiber.over && fiber.begun) {
    fiber.dying = true;
    fiber.left = 1;
    fiber.resume();
  }
  fiber.over = true;
}

std::uint64_t Schedule::moment() {
  if (Fiber::running != nullptr) Fiber::running->spent = 0;
  return ++now;
}

bool Schedule::has_stuck() const { return stuck; }

Schedule::Pause::Pause() { ++pauses; }
Schedule::Pause::~Pause() { --pauses; }

}  // namespace weir::test
