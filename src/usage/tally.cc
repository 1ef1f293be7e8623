// Counts by rule. See tally.h, also for threads.
#include "usage/tally.h"

#include <algorithm>
#include <new>

#include "weir/rule_counts.h"

namespace weir::usage {

Tally::Tally()
    : stripes_(std::make_unique<std::array<Stripe, base::kStripes>>()),
      known_{{std::string(kInlineRule), {kInline, UINT64_MAX}}} {}

Tally::~Tally() {
  for (Stripe& stripe : *stripes_) {
    for (std::atomic<Block*>& block : stripe.blocks) delete block.load();
  }
}

std::uint32_t Tally::number_of(std::string_view rule) {
  auto known = known_.find(rule);
  if (known == known_.end()) {
    const std::uint32_t number = numbers_ < kNumbersMax ? numbers_++ : reuse_number();
    known = known_.emplace(std::string(rule), Known{number, 0}).first;
  }
  if (known->second.number != kInline) known->second.policy = policies_;
  return known->second.number;
}

// There are twice as many numbers as a policy can have rules, so some belong to rules that no longer exist.
std::uint32_t Tally::reuse_number() {
  const auto oldest = std::ranges::min_element(known_, {}, [](const auto& one) { return one.second.policy; });
  const std::uint32_t number = oldest->second.number;
  known_.erase(oldest);
  for (Stripe& stripe : *stripes_) {
    Block* const block = stripe.blocks[number / kBlock].load(std::memory_order_acquire);
    if (block == nullptr) continue;
    Cell& cell = block->cells[number % kBlock];
    for (auto& count : cell.counts) count.store(0, std::memory_order_relaxed);
    cell.last_hit.store(0, std::memory_order_relaxed);
  }
  return number;
}

Tally::Cell* Tally::cell_of(std::uint32_t number) noexcept {
  std::atomic<Block*>& place = (*stripes_)[base::stripe_of_this_thread()].blocks[number / kBlock];
  Block* block = place.load(std::memory_order_acquire);
  if (block == nullptr) {
    auto made = std::unique_ptr<Block>(new (std::nothrow) Block);
    if (made == nullptr) return nullptr;
    if (place.compare_exchange_strong(block, made.get(), std::memory_order_acq_rel)) block = made.release();
  }
  return &block->cells[number % kBlock];
}

void Tally::add(std::uint32_t number, What what, Micros now, std::uint64_t n) noexcept {
  Cell* const cell = cell_of(number);
  if (cell == nullptr) return;
  cell->counts[static_cast<std::size_t>(what)].fetch_add(n, std::memory_order_relaxed);
  if (cell->last_hit.load(std::memory_order_relaxed) < now.count()) {
    cell->last_hit.store(now.count(), std::memory_order_relaxed);
  }
}

void Tally::meet(std::uint32_t number, Micros now) noexcept {
  constexpr Micros kStep{1'000'000};
  Cell* const cell = cell_of(number);
  if (cell == nullptr || cell->last_hit.load(std::memory_order_relaxed) > (now - kStep).count()) return;
  cell->last_hit.store(now.count(), std::memory_order_relaxed);
}

Tally::Counts Tally::read(std::uint32_t number) const {
  Counts sum;
  for (const Stripe& stripe : *stripes_) {
    const Block* const block = stripe.blocks[number / kBlock].load(std::memory_order_acquire);
    if (block == nullptr) continue;
    const Cell& cell = block->cells[number % kBlock];
    for (std::size_t i = 0; i < kWhats; ++i) sum.counts[i] += cell.counts[i].load(std::memory_order_relaxed);
    sum.last_hit = std::max(sum.last_hit, Micros{cell.last_hit.load(std::memory_order_relaxed)});
  }
  return sum;
}

}  // namespace weir::usage
