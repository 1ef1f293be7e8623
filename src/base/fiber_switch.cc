// The switch, in assembly for two processors. fiber_switch.h says why.
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

asm(R"(
.macro function name
.p2align 4
.globl \name
.hidden \name
.type \name, %function
\name:
.cfi_startproc
.endm

.macro end_function name
.cfi_endproc
.size \name, .-\name
.endm

.text
)"
#if defined(__x86_64__)
    R"(
function weir_fiber_switch
.irp register, rbp, rbx, r12, r13, r14, r15
  pushq %\register
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %\register, 0
.endr
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
.irp register, r15, r14, r13, r12, rbx, rbp
  popq %\register
  .cfi_adjust_cfa_offset -8
  .cfi_restore %\register
.endr
  ret
end_function weir_fiber_switch

function weir_fiber_begin
.cfi_undefined %rip
  movq %r13, %rdi
  call *%r12
  ud2
end_function weir_fiber_begin
)"
#else
    R"(
.macro each_saved_pair instruction
  \instruction x19, x20, [sp, #0]
  \instruction x21, x22, [sp, #16]
  \instruction x23, x24, [sp, #32]
  \instruction x25, x26, [sp, #48]
  \instruction x27, x28, [sp, #64]
  \instruction x29, x30, [sp, #80]
  \instruction d8, d9, [sp, #96]
  \instruction d10, d11, [sp, #112]
  \instruction d12, d13, [sp, #128]
  \instruction d14, d15, [sp, #144]
.endm

function weir_fiber_switch
  sub sp, sp, #160
  .cfi_adjust_cfa_offset 160
  each_saved_pair stp
  .cfi_rel_offset x29, 80
  .cfi_rel_offset x30, 88
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  each_saved_pair ldp
  add sp, sp, #160
  .cfi_adjust_cfa_offset -160
  .cfi_restore x29
  .cfi_restore x30
  ret
end_function weir_fiber_switch

function weir_fiber_begin
.cfi_undefined x30
  mov x0, x20
  blr x19
  brk #1
end_function weir_fiber_begin
)"
#endif
);
#endif

namespace weir::base {

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

}  // namespace weir::base
