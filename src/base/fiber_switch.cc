// The switch, in assembly for two processors. See fiber_switch.h.
//
// It pushes the preserved registers onto the old stack and pops them from the new one. Both stacks look alike below
// the stack pointer, so one set of unwind information describes both. A new stack looks as if it had stopped at the
// beginning of weir_fiber_begin. The caller of that function is marked undefined, so every stack walk ends there.
#include "base/fiber_switch.h"

#include <cstdint>
#include <cstring>

#ifndef WEIR_FIBERS_BY_UCONTEXT
extern "C" {
void weir_fiber_switch(void** from, void* to);
void weir_fiber_begin();
}
#endif

#if defined(WEIR_FIBERS_BY_UCONTEXT)
// No assembly.
#elif defined(__x86_64__)
asm(R"(
.text
.p2align 4
.globl weir_fiber_switch
.hidden weir_fiber_switch
.type weir_fiber_switch, @function
weir_fiber_switch:
.cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbp, 0
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  pushq %r12
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r12, 0
  pushq %r13
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r13, 0
  pushq %r14
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r14, 0
  pushq %r15
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r15, 0
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r15
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r15
  popq %r14
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r14
  popq %r13
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r13
  popq %r12
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r12
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  popq %rbp
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbp
  ret
.cfi_endproc
.size weir_fiber_switch, .-weir_fiber_switch

.p2align 4
.globl weir_fiber_begin
.hidden weir_fiber_begin
.type weir_fiber_begin, @function
weir_fiber_begin:
.cfi_startproc
.cfi_undefined %rip
  movq %r13, %rdi
  call *%r12
  ud2
.cfi_endproc
.size weir_fiber_begin, .-weir_fiber_begin
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.globl weir_fiber_switch
.hidden weir_fiber_switch
.type weir_fiber_switch, %function
weir_fiber_switch:
.cfi_startproc
  sub sp, sp, #160
  .cfi_adjust_cfa_offset 160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  .cfi_rel_offset x29, 80
  .cfi_rel_offset x30, 88
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  .cfi_adjust_cfa_offset -160
  .cfi_restore x29
  .cfi_restore x30
  ret
.cfi_endproc
.size weir_fiber_switch, .-weir_fiber_switch

.p2align 4
.globl weir_fiber_begin
.hidden weir_fiber_begin
.type weir_fiber_begin, %function
weir_fiber_begin:
.cfi_startproc
.cfi_undefined x30
  mov x0, x20
  blr x19
  brk #1
.cfi_endproc
.size weir_fiber_begin, .-weir_fiber_begin
)");
#endif

namespace weir {

#if defined(WEIR_FIBERS_BY_UCONTEXT)
namespace {

// makecontext() passes integers only.
void enter_halves(unsigned entry_high, unsigned entry_low, unsigned argument_high, unsigned argument_low) {
  const auto whole = [](unsigned high, unsigned low) { return std::uint64_t{high} << 32 | low; };
  const auto entry = reinterpret_cast<void (*)(void*)>(whole(entry_high, entry_low));
  entry(reinterpret_cast<void*>(whole(argument_high, argument_low)));
}

}  // namespace

void begin_at(FiberPlace& place, std::byte* bottom, std::size_t bytes, void (*entry)(void*), void* argument) {
  getcontext(&place.context);
  place.context.uc_stack.ss_sp = bottom;
  place.context.uc_stack.ss_size = bytes;
  place.context.uc_link = nullptr;
  const auto high = [](std::uint64_t word) { return static_cast<unsigned>(word >> 32); };
  const auto low = [](std::uint64_t word) { return static_cast<unsigned>(word); };
  const auto function = reinterpret_cast<std::uintptr_t>(entry), data = reinterpret_cast<std::uintptr_t>(argument);
  makecontext(&place.context, reinterpret_cast<void (*)()>(enter_halves), 4, high(function), low(function), high(data),
              low(data));
}

void go_from(FiberPlace& from, FiberPlace& to) { swapcontext(&from.context, &to.context); }

#else

// The words that weir_fiber_switch will pop. An address above them would belong to the caller of weir_fiber_begin.
void begin_at(FiberPlace& place, std::byte* bottom, std::size_t bytes, void (*entry)(void*), void* argument) {
  const auto top = (reinterpret_cast<std::uintptr_t>(bottom) + bytes) & ~std::uintptr_t{15};
  const auto begin = reinterpret_cast<std::uintptr_t>(&weir_fiber_begin);
  const auto function = reinterpret_cast<std::uintptr_t>(entry), data = reinterpret_cast<std::uintptr_t>(argument);
#if defined(__x86_64__)
  constexpr std::uint64_t kModes = std::uint64_t{0x037f} << 32 | 0x1f80;      // x87 and SSE modes as in a new process
  const std::uint64_t words[] = {kModes, 0, 0, data, function, 0, 0, begin};  // r15 r14 r13 r12 rbx rbp rip
#else
  const std::uint64_t words[20] = {function, data, 0, 0, 0, 0, 0, 0, 0, 0, 0, begin};  // x19 x20 ... x29 x30 d8 ...
#endif
  place.stack_pointer = reinterpret_cast<void*>(top - sizeof words);
  std::memcpy(place.stack_pointer, words, sizeof words);
}

void go_from(FiberPlace& from, FiberPlace& to) { weir_fiber_switch(&from.stack_pointer, to.stack_pointer); }

#endif

}  // namespace weir
