// Implements the C interface on top of Limiter: checks pointers and lengths, converts values, and lets no exception
// escape. See weir/weir.h. Any thread. Tested by c_api_test.cc.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "weir/limiter.h"
#include "weir/weir.h"

struct weir_limiter {
  weir::Limiter limiter;
};
struct weir_limit {
  weir::Limit limit;
};

namespace {

using weir::Charge;
using weir::Decision;
using weir::Error;
using weir::ErrorCode;
using weir::Limiter;
using weir::Micros;
using weir::Result;
using weir::Verdict;

static_assert(sizeof(weir_decision) == 64, "its size is part of the ABI");
static_assert(sizeof(weir_charge) == 32 || sizeof(void*) != 8, "its size is part of the ABI");
static_assert(WEIR_CHARGES_MAX == weir::kChargesMax && WEIR_RESERVED_MAX == weir::kReservedMax);
static_assert(WEIR_ID_BYTES_MAX == weir::kRequestIdBytesMax && WEIR_ID_BYTES_MAX == weir::kHoldIdBytesMax);

constexpr std::size_t kManyAtOnce = 64;  // batch size of weir_check_many(): as many as fit on the stack

// The size of the first version of the options.
constexpr std::size_t kOptionsBytesMin = offsetof(weir_options, reserved) + sizeof(std::int32_t);

// A fixed buffer, because errors must be reported without memory, too.
thread_local std::array<char, 512> last_error{};

weir_status report(ErrorCode code, std::string_view message) {
  const std::size_t length = std::min(message.size(), last_error.size() - 1);
  std::memcpy(last_error.data(), message.data(), length);
  last_error[length] = '\0';
  switch (code) {
    case ErrorCode::invalid_argument:
      return WEIR_INVALID_ARGUMENT;
    case ErrorCode::out_of_range:
      return WEIR_OUT_OF_RANGE;
    case ErrorCode::not_found:
      return WEIR_NOT_FOUND;
    case ErrorCode::exhausted:
      return WEIR_EXHAUSTED;
    case ErrorCode::unavailable:
      return WEIR_UNAVAILABLE;
  }
  return WEIR_INVALID_ARGUMENT;
}

weir_status report(const Error& error) { return report(error.code, error.message); }

weir_status missing(const char* name) {
  std::array<char, 64> text{};
  std::strncat(text.data(), name, 40);
  std::strncat(text.data(), " is NULL", 20);
  return report(ErrorCode::invalid_argument, text.data());
}

weir_status refuse_null(const weir_limiter* limiter, const weir_limit* limit, const weir_decision* decision) {
  if (limiter == nullptr) return missing("limiter");
  if (limit == nullptr) return missing("limit");
  return decision == nullptr ? missing("decision") : WEIR_OK;
}

std::string_view text_of(const char* text, std::size_t bytes) {
  if (text == nullptr) return {};  // the limiter refuses an empty one later
  return bytes == WEIR_STRING ? std::string_view(text) : std::string_view(text, bytes);
}

weir_decision to_c(const Decision& decision) {
  return {.allowed = decision.allowed ? 1 : 0,
          .reserved = 0,
          .limit = decision.limit,
          .remaining = decision.remaining,
          .retry_after_us = decision.retry_after.count(),
          .reset_after_us = decision.reset_after.count(),
          .delay_us = decision.delay.count(),
          .reserved_too = {}};
}

Charge charge_of(const weir_charge& charge) {
  return {text_of(charge.key, charge.key_bytes), charge.limit == nullptr ? nullptr : &charge.limit->limit, charge.cost};
}

weir_status answer(const Result<Decision>& result, weir_decision* decision) {
  if (!result) return report(result.error());
  *decision = to_c(*result);
  return WEIR_OK;
}

weir_status answer(const Result<bool>& result, std::int32_t* value) {
  if (!result) return report(result.error());
  if (value != nullptr) *value = *result ? 1 : 0;
  return WEIR_OK;
}

// Where to write a verdict; each pointer may be null.
struct VerdictPlace {
  std::int32_t* allowed = nullptr;
  weir_decision* decisions = nullptr;
  std::size_t* binding = nullptr;
};

void write(const Verdict& verdict, const VerdictPlace& place) {
  if (place.allowed != nullptr) *place.allowed = verdict.allowed ? 1 : 0;
  if (place.binding != nullptr) *place.binding = verdict.binding;
  if (place.decisions != nullptr)
    std::transform(verdict.decisions.begin(), verdict.decisions.end(), place.decisions, to_c);
}

weir_status answer(const Result<Verdict>& result, const VerdictPlace& place) {
  if (!result) return report(result.error());
  write(*result, place);
  return WEIR_OK;
}

// Converts the charges to the library's type and calls `call` with them.
template <class Call>
weir_status with_charges(const weir_limiter* limiter, const weir_charge* charges, std::size_t count, Call call) {
  if (limiter == nullptr) return missing("limiter");
  if (charges == nullptr) return missing("charges");
  if (count == 0 || count > WEIR_CHARGES_MAX) {
    return report(ErrorCode::out_of_range, "a request is charged to 1 to 32 limits");
  }
  std::array<Charge, WEIR_CHARGES_MAX> own{};
  std::transform(charges, charges + count, own.begin(), charge_of);
  return call(std::span<const Charge>(own.data(), count));
}

// 0 means the default.
Micros lasts_of(std::int64_t lasts_us) { return lasts_us == 0 ? weir::kRequestIdLasts : Micros{lasts_us}; }

weir::LimiterOptions options_of(const weir_options& given) {
  weir::LimiterOptions options;
  if (given.file != nullptr) options.file = given.file;
  options.keys = given.keys;
  options.log_bytes = given.log_bytes;
  options.memory = given.memory;
  if (given.waiters_max != 0) options.waiters_max = given.waiters_max;
  if (given.sweep_by_hand != 0) options.sweeping = weir::Sweeping::by_hand;
  return options;
}

}  // namespace

uint32_t weir_abi_version(void) { return WEIR_ABI_VERSION; }
const char* weir_version(void) { return WEIR_VERSION; }
const char* weir_last_error(void) { return last_error.data(); }

weir_status weir_open(const weir_options* options, weir_limiter** limiter) {
  if (limiter == nullptr) return missing("limiter");
  weir_options all = WEIR_OPTIONS;
  if (options != nullptr) {
    // A caller that was compiled before an option was added leaves it at its default.
    if (options->size < kOptionsBytesMin || options->size > sizeof(all)) {
      return report(ErrorCode::invalid_argument,
                    "unknown weir_options.size: initialize the options with WEIR_OPTIONS, and use a library at least "
                    "as new as its header");
    }
    std::memcpy(&all, options, options->size);
  }
  try {
    auto opened = weir::open_limiter(options_of(all));
    if (!opened) return report(opened.error());
    *limiter = new weir_limiter{*std::move(opened)};
    return WEIR_OK;
  } catch (const std::bad_alloc&) {
    return report(ErrorCode::exhausted, "out of memory");
  }
}

void weir_close(weir_limiter* limiter) { delete limiter; }

weir_status weir_compile(const char* algorithm, const char* quota, weir_limit** limit) {
  if (quota == nullptr) return missing("quota");
  if (limit == nullptr) return missing("limit");
  try {
    std::optional<weir::Algorithm> named;
    if (algorithm != nullptr) {
      const auto parsed = weir::parse_algorithm(algorithm);
      if (!parsed) return report(parsed.error());
      named = *parsed;
    }
    auto compiled = weir::compile(quota, named);
    if (!compiled) return report(compiled.error());
    *limit = new weir_limit{*std::move(compiled)};
    return WEIR_OK;
  } catch (const std::bad_alloc&) {
    return report(ErrorCode::exhausted, "out of memory");
  }
}

void weir_limit_free(weir_limit* limit) { delete limit; }

weir_status weir_check(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes, int64_t cost,
                       weir_decision* decision) {
  if (const weir_status wrong = refuse_null(limiter, limit, decision)) return wrong;
  return answer(limiter->limiter.check(text_of(key, key_bytes), limit->limit, cost), decision);
}

weir_status weir_check_all(weir_limiter* limiter, const weir_charge* charges, size_t count, int32_t* allowed,
                           weir_decision* decisions, size_t* binding) {
  return with_charges(limiter, charges, count, [&](std::span<const Charge> own) {
    return answer(limiter->limiter.check_all(own), {allowed, decisions, binding});
  });
}

weir_status weir_check_once(weir_limiter* limiter, const char* id, size_t id_bytes, int64_t lasts_us,
                            const weir_charge* charges, size_t count, int32_t* allowed, weir_decision* decisions,
                            size_t* binding) {
  return with_charges(limiter, charges, count, [&](std::span<const Charge> own) {
    return answer(limiter->limiter.check_once(text_of(id, id_bytes), own, lasts_of(lasts_us)),
                  {allowed, decisions, binding});
  });
}

weir_status weir_check_many(weir_limiter* limiter, const weir_charge* charges, size_t count, weir_decision* decisions,
                            weir_status* statuses) {
  if (limiter == nullptr) return missing("limiter");
  if (count == 0) return WEIR_OK;
  if (charges == nullptr) return missing("charges");
  if (decisions == nullptr) return missing("decisions");
  if (statuses == nullptr) return missing("statuses");
  weir_status first = WEIR_OK;
  std::array<Charge, kManyAtOnce> own{};
  for (std::size_t from = 0; from < count; from += kManyAtOnce) {
    const std::size_t many = std::min(kManyAtOnce, count - from);
    std::transform(charges + from, charges + from + many, own.begin(), charge_of);
    const auto answers = limiter->limiter.check_many({own.data(), many});
    for (std::size_t i = 0; i < many; ++i) {
      decisions[from + i] = {};
      if (!answers[i] && first != WEIR_OK) {  // weir_last_error() reports the first
        const auto kept = last_error;
        statuses[from + i] = answer(answers[i], &decisions[from + i]);
        last_error = kept;
      } else {
        statuses[from + i] = answer(answers[i], &decisions[from + i]);
        if (first == WEIR_OK) first = statuses[from + i];
      }
    }
  }
  return first;
}

weir_status weir_peek(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                      weir_decision* decision) {
  if (const weir_status wrong = refuse_null(limiter, limit, decision)) return wrong;
  return answer(limiter->limiter.peek(text_of(key, key_bytes), limit->limit), decision);
}

weir_status weir_give_back(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                           int64_t permits, weir_decision* decision) {
  if (const weir_status wrong = refuse_null(limiter, limit, decision)) return wrong;
  return answer(limiter->limiter.refund(text_of(key, key_bytes), limit->limit, permits), decision);
}

weir_status weir_reset(weir_limiter* limiter, const char* key, size_t key_bytes, int32_t* found) {
  if (limiter == nullptr) return missing("limiter");
  return answer(limiter->limiter.reset(text_of(key, key_bytes)), found);
}

weir_status weir_acquire(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                         const char* id, size_t id_bytes, int64_t cost, weir_decision* decision) {
  if (const weir_status wrong = refuse_null(limiter, limit, decision)) return wrong;
  return answer(limiter->limiter.acquire(text_of(key, key_bytes), text_of(id, id_bytes), limit->limit, cost), decision);
}

weir_status weir_release(weir_limiter* limiter, const char* key, size_t key_bytes, const char* id, size_t id_bytes,
                         int32_t* held) {
  if (limiter == nullptr) return missing("limiter");
  return answer(limiter->limiter.release(text_of(key, key_bytes), text_of(id, id_bytes)), held);
}

weir_status weir_reserve(weir_limiter* limiter, const weir_charge* charges, size_t count, int64_t lasts_us,
                         char id[WEIR_RESERVATION_BYTES], int32_t* allowed, weir_decision* decisions) {
  if (limiter == nullptr) return missing("limiter");
  if (id == nullptr) return missing("id");
  if (allowed == nullptr) return missing("allowed");  // without it the caller could not know whether to commit
  return with_charges(limiter, charges, count, [&](std::span<const Charge> own) -> weir_status {
    const auto reservation = limiter->limiter.reserve(own, {.lasts = lasts_of(lasts_us)});
    if (!reservation) return report(reservation.error());
    write(reservation->verdict, {allowed, decisions, nullptr});
    id[0] = '\0';
    if (reservation->verdict.allowed) std::memcpy(id, reservation->id.c_str(), WEIR_RESERVATION_BYTES);
    return WEIR_OK;
  });
}

weir_status weir_commit(weir_limiter* limiter, const char* id, const weir_charge* actual, size_t count,
                        weir_decision* decisions) {
  return with_charges(limiter, actual, count, [&](std::span<const Charge> own) {
    return answer(limiter->limiter.commit(text_of(id, WEIR_STRING), own), {.decisions = decisions});
  });
}

weir_status weir_cancel(weir_limiter* limiter, const char* id, const weir_charge* reserved, size_t count) {
  return with_charges(limiter, reserved, count, [&](std::span<const Charge> own) {
    return answer(limiter->limiter.cancel(text_of(id, WEIR_STRING), own), VerdictPlace{});
  });
}

weir_status weir_wait(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes, int64_t cost,
                      int64_t deadline_us, weir_decision* decision) {
  if (const weir_status wrong = refuse_null(limiter, limit, decision)) return wrong;
  return answer(
      limiter->limiter.wait(text_of(key, key_bytes), limit->limit, Micros{deadline_us}, {.cost = cost, .stop = {}}),
      decision);
}

int64_t weir_now_us(const weir_limiter* limiter) { return limiter == nullptr ? -1 : limiter->limiter.now().count(); }
size_t weir_size(const weir_limiter* limiter) { return limiter == nullptr ? 0 : limiter->limiter.size(); }
int32_t weir_sweep(weir_limiter* limiter) { return limiter == nullptr || limiter->limiter.sweep() ? 1 : 0; }
