// The C interface of Weir: the limiter of limiter.h for every language that can call C.
//
//   weir_limiter* limiter = NULL;
//   weir_limit* limit = NULL;
//   weir_decision decision;
//   if (weir_open(NULL, &limiter) != WEIR_OK || weir_compile(NULL, "10/s burst 50", &limit) != WEIR_OK ||
//       weir_check(limiter, limit, "user:42", WEIR_STRING, 1, &decision) != WEIR_OK) return report(weir_last_error());
//   if (decision.allowed) serve();
//
// A denial is a result, not an error. Any thread may call any function with the same handles, except weir_close() and
// weir_limit_free(), which must come last. Nothing throws. limiter.h describes each function in full. Tested by
// c_api_test.cc and tests/install.sh, which compiles examples/*.c.
//
// The interface is stable. Within one WEIR_ABI_VERSION, functions and codes are only added. Structures that the
// caller fills begin with their size and grow at the end; the others keep their size.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ABI_VERSION 1
uint32_t weir_abi_version(void);  // of the loaded library
const char* weir_version(void);   // such as "0.1.0"

typedef struct weir_limiter weir_limiter;
typedef struct weir_limit weir_limit;

typedef int32_t weir_status;
enum {
  WEIR_OK = 0,
  WEIR_INVALID_ARGUMENT = 1,  // a text or a value is wrong
  WEIR_OUT_OF_RANGE = 2,      // well formed, but beyond a bound that the message names
  WEIR_NOT_FOUND = 3,         // nothing has this name
  WEIR_EXHAUSTED = 4,         // a bounded resource is full, or memory ran out
  WEIR_UNAVAILABLE = 5        // a file could not be used, or the limiter is closing
};

// The error message of this thread's last call that did not return WEIR_OK, for a person to act on. Valid until the
// next such call; never NULL.
const char* weir_last_error(void);

// Pass this as the length of a text that ends with a zero byte.
#define WEIR_STRING ((size_t)-1)
// The retry_after_us of a request whose cost exceeds what the limit can ever allow.
#define WEIR_NEVER INT64_MAX

typedef struct weir_options {
  size_t size;            // sizeof(weir_options); WEIR_OPTIONS sets it
  const char* file;       // state file, shared by all processes that open it; NULL: memory of this process
  uint64_t keys;          // capacity in live keys; 0: 1,000,000, or that of the file
  uint64_t log_bytes;     // for the events of sliding logs; 0: in proportion to the keys
  uint64_t waiters_max;   // callers that may wait at once; 0: 10,000
  int32_t sweep_by_hand;  // 1: no thread evicts recovered keys, weir_sweep() does
  int32_t reserved;       // 0
  uint64_t memory;        // total bytes: sets keys and log_bytes where they are 0; 0: no total
} weir_options;
#define WEIR_OPTIONS \
  { sizeof(weir_options), NULL, 0, 0, 0, 0, 0, 0 }

typedef struct weir_decision {
  int32_t allowed;          // 1 or 0
  int32_t reserved;         // 0
  int64_t limit;            // a bucket's capacity, else the permits of a period
  int64_t remaining;        // the largest cost that would pass now
  int64_t retry_after_us;   // wait until the same request would pass; 0 if it passed, WEIR_NEVER if it never can
  int64_t reset_after_us;   // wait until, without traffic, remaining == limit
  int64_t delay_us;         // leaky_bucket: how long this request must be delayed
  int64_t reserved_too[2];  // 0
} weir_decision;

// One limit to charge. Cost 0 peeks, a negative cost refunds.
typedef struct weir_charge {
  const char* key;
  size_t key_bytes;  // or WEIR_STRING
  const weir_limit* limit;
  int64_t cost;
} weir_charge;

#define WEIR_CHARGES_MAX 32
#define WEIR_RESERVED_MAX 16
#define WEIR_ID_BYTES_MAX 64
// The size of the id that weir_reserve() writes: 32 digits and a zero byte.
#define WEIR_RESERVATION_BYTES 33

// options may be NULL. Writes the handle only if it returns WEIR_OK.
weir_status weir_open(const weir_options* options, weir_limiter** limiter);
// Calls that wait in weir_wait() return WEIR_UNAVAILABLE. No other call may be in flight. NULL is ignored.
void weir_close(weir_limiter* limiter);

// quota: such as "100/minute", "10/s burst 50", "20 concurrent". algorithm: such as "token_bucket", or NULL to let
// the text decide. A limit is not bound to a limiter.
weir_status weir_compile(const char* algorithm, const char* quota, weir_limit** limit);
void weir_limit_free(weir_limit* limit);

weir_status weir_check(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes, int64_t cost,
                       weir_decision* decision);

// One request, several limits: charges all or none. count: 1 to WEIR_CHARGES_MAX. decisions: an array of `count`, or
// NULL. binding: NULL, or receives the index of the denial with the longest wait, else of the tightest limit.
weir_status weir_check_all(weir_limiter* limiter, const weir_charge* charges, size_t count, int32_t* allowed,
                           weir_decision* decisions, size_t* binding);

// weir_check_all() made idempotent. If a request with this id was allowed within the last lasts_us (0: ten minutes),
// this one is allowed and charged nothing. With other keys, algorithms or costs it is another request.
weir_status weir_check_once(weir_limiter* limiter, const char* id, size_t id_bytes, int64_t lasts_us,
                            const weir_charge* charges, size_t count, int32_t* allowed, weir_decision* decisions,
                            size_t* binding);

// Several independent requests, any number. statuses and decisions: arrays of `count`. Returns the first status that
// is not WEIR_OK, but fills both arrays in any case. Aborts the program if there is no memory for that.
weir_status weir_check_many(weir_limiter* limiter, const weir_charge* charges, size_t count, weir_decision* decisions,
                            weir_status* statuses);

weir_status weir_peek(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                      weir_decision* decision);
weir_status weir_give_back(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                           int64_t permits, weir_decision* decision);
// Deletes the key under every algorithm. found: receives whether there was anything to delete, or NULL.
weir_status weir_reset(weir_limiter* limiter, const char* key, size_t key_bytes, int32_t* found);

// Permits in flight, for limits such as "20 concurrent". held: receives whether the id had a permit, or NULL.
weir_status weir_acquire(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                         const char* id, size_t id_bytes, int64_t cost, weir_decision* decision);
weir_status weir_release(weir_limiter* limiter, const char* key, size_t key_bytes, const char* id, size_t id_bytes,
                         int32_t* held);

// Charges what the work may cost. If allowed, `id` receives the reservation's id. Settle it once, within lasts_us (0:
// ten minutes): by weir_commit() with the same keys and limits and the actual costs, or by weir_cancel(). The unused
// part is refunded as of the time of the reservation: a window that has ended refunds nothing.
weir_status weir_reserve(weir_limiter* limiter, const weir_charge* charges, size_t count, int64_t lasts_us,
                         char id[WEIR_RESERVATION_BYTES], int32_t* allowed, weir_decision* decisions);
weir_status weir_commit(weir_limiter* limiter, const char* id, const weir_charge* actual, size_t count,
                        weir_decision* decisions);
weir_status weir_cancel(weir_limiter* limiter, const char* id, const weir_charge* reserved, size_t count);

// Blocks until the permits are available, and charges them. If they cannot be available by the deadline, a time of
// weir_now_us(), it returns at once, denied. Waiters for one key are served in order of arrival.
weir_status weir_wait(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes, int64_t cost,
                      int64_t deadline_us, weir_decision* decision);

// The time that the next decision will use, in microseconds since the Unix epoch. -1 if limiter is NULL.
int64_t weir_now_us(const weir_limiter* limiter);
// Live keys.
size_t weir_size(const weir_limiter* limiter);
// Does a slice of the work that sweep_by_hand leaves to the caller, well below 1 ms. Returns 1 at the end of a round
// through all keys; then rest for about a second. Otherwise returns 0.
int32_t weir_sweep(weir_limiter* limiter);

#ifdef __cplusplus
}
#endif
