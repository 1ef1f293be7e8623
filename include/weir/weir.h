// The C interface of Weir: the limiter of limiter.h for every language that can call C.
//
//   weir_limiter* limiter = NULL;
//   weir_limit* limit = NULL;
//   weir_decision decision;
//   if (weir_open(NULL, &limiter) != WEIR_OK || weir_compile(NULL, "10/s burst 50", &limit) != WEIR_OK ||
//       weir_check(limiter, limit, "user:42", WEIR_STRING, 1, &decision) != WEIR_OK) return report(weir_last_error());
//   if (decision.allowed) serve();
//
// A denial is an answer, not an error. Every function may be called from any thread, with the same handles, but for
// weir_close() and weir_limit_free(), which come last. Nothing throws. The meaning of each function is told in
// limiter.h. Tested by c_api_test.cc and tests/install.sh, which compiles examples/*.c.
//
// What is here stays: within one WEIR_ABI_VERSION functions and codes are only added, structures that the caller
// fills begin with their size and grow at the end, and the others keep their size.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ABI_VERSION 1
uint32_t weir_abi_version(void);  // of the library that was loaded
const char* weir_version(void);   // such as "0.1.0"

typedef struct weir_limiter weir_limiter;
typedef struct weir_limit weir_limit;

typedef int32_t weir_status;
enum {
  WEIR_OK = 0,
  WEIR_INVALID_ARGUMENT = 1,  // a text or a value is wrong
  WEIR_OUT_OF_RANGE = 2,      // well formed, but beyond a bound that the message names
  WEIR_NOT_FOUND = 3,         // a name that nothing bears
  WEIR_EXHAUSTED = 4,         // a bounded resource is full, or there is no memory
  WEIR_UNAVAILABLE = 5        // a file could not be used, or the limiter is closing
};

// What went wrong in the last call of this thread that did not answer WEIR_OK, for a person to act on. Valid until
// the next such call; never NULL.
const char* weir_last_error(void);

// As the length of a text: it ends with a zero byte.
#define WEIR_STRING ((size_t)-1)
// As retry_after_us: more is asked than the limit can ever give.
#define WEIR_NEVER INT64_MAX

typedef struct weir_options {
  size_t size;            // sizeof(weir_options); WEIR_OPTIONS sets it
  const char* file;       // where the state lives, shared with all who open it; NULL: in this process only
  uint64_t keys;          // live keys there is room for; 0: 1,000,000, or what the file has
  uint64_t log_bytes;     // for the events of sliding logs; 0: as suits the keys
  uint64_t waiters_max;   // who may wait at once; 0: 10,000
  int32_t sweep_by_hand;  // 1: no thread forgets what has recovered, weir_sweep() does
  int32_t reserved;       // 0
  uint64_t memory;        // bytes of the whole: what of keys and log_bytes is 0 follows from it; 0: no matter
} weir_options;
#define WEIR_OPTIONS \
  { sizeof(weir_options), NULL, 0, 0, 0, 0, 0, 0 }

typedef struct weir_decision {
  int32_t allowed;          // 1 or 0
  int32_t reserved;         // 0
  int64_t limit;            // a bucket's capacity, else the permits of a period
  int64_t remaining;        // the largest cost that would pass now
  int64_t retry_after_us;   // after so long the same request would pass; 0 if it did, WEIR_NEVER if it cannot
  int64_t reset_after_us;   // after so long without traffic nothing is spent any more
  int64_t delay_us;         // leaky_bucket: the time until this request's turn
  int64_t reserved_too[2];  // 0
} weir_decision;

// One limit to be debited. cost 0 peeks, a negative one gives back.
typedef struct weir_charge {
  const char* key;
  size_t key_bytes;  // or WEIR_STRING
  const weir_limit* limit;
  int64_t cost;
} weir_charge;

#define WEIR_CHARGES_MAX 32
#define WEIR_RESERVED_MAX 16
#define WEIR_ID_BYTES_MAX 64
// What weir_reserve() writes: 32 digits and a zero byte.
#define WEIR_RESERVATION_BYTES 33

// options may be NULL. The handle is written only with WEIR_OK.
weir_status weir_open(const weir_options* options, weir_limiter** limiter);
// Those who wait get WEIR_UNAVAILABLE; no other call may be under way. NULL is ignored.
void weir_close(weir_limiter* limiter);

// A quota such as "100/minute", "10/s burst 50", "20 concurrent"; the algorithm, such as "token_bucket", may be NULL,
// then the text chooses. A limit belongs to no limiter.
weir_status weir_compile(const char* algorithm, const char* quota, weir_limit** limit);
void weir_limit_free(weir_limit* limit);

weir_status weir_check(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes, int64_t cost,
                       weir_decision* decision);

// One request, several limits: all are charged or none is. `decisions` has room for `count`, which is at most
// WEIR_CHARGES_MAX; it may be NULL, and so may `binding`, the number of the decision that counts.
weir_status weir_check_all(weir_limiter* limiter, const weir_charge* charges, size_t count, int32_t* allowed,
                           weir_decision* decisions, size_t* binding);

// The same for a request that may be sent twice: a further one with the id of one that was allowed is allowed and
// charged nothing, for lasts_us (0: ten minutes). With other keys, algorithms or costs it is another request.
weir_status weir_check_once(weir_limiter* limiter, const char* id, size_t id_bytes, int64_t lasts_us,
                            const weir_charge* charges, size_t count, int32_t* allowed, weir_decision* decisions,
                            size_t* binding);

// Several requests, each on its own, any number. `statuses` and `decisions` have room for `count`. Answers the first
// status that is not WEIR_OK, but always answers all; without memory for that, the program ends.
weir_status weir_check_many(weir_limiter* limiter, const weir_charge* charges, size_t count, weir_decision* decisions,
                            weir_status* statuses);

weir_status weir_peek(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                      weir_decision* decision);
weir_status weir_give_back(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                           int64_t permits, weir_decision* decision);
// Forgets the key under every algorithm; `found` (or NULL): whether there was anything to forget.
weir_status weir_reset(weir_limiter* limiter, const char* key, size_t key_bytes, int32_t* found);

// Permits in flight, for limits like "20 concurrent". `held` (or NULL): whether the permit was held.
weir_status weir_acquire(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes,
                         const char* id, size_t id_bytes, int64_t cost, weir_decision* decision);
weir_status weir_release(weir_limiter* limiter, const char* key, size_t key_bytes, const char* id, size_t id_bytes,
                         int32_t* held);

// Takes what the work may cost, for at most lasts_us (0: ten minutes); `id` receives its name if it is allowed. Then
// either commit, with the same keys and limits and the actual costs, or cancel, once. What was not used is refunded as
// of when it was reserved: nothing comes back from a window that has ended.
weir_status weir_reserve(weir_limiter* limiter, const weir_charge* charges, size_t count, int64_t lasts_us,
                         char id[WEIR_RESERVATION_BYTES], int32_t* allowed, weir_decision* decisions);
weir_status weir_commit(weir_limiter* limiter, const char* id, const weir_charge* actual, size_t count,
                        weir_decision* decisions);
weir_status weir_cancel(weir_limiter* limiter, const char* id, const weir_charge* reserved, size_t count);

// Blocks until the permits come, and takes them; or answers at once, denied, if they cannot come by the deadline, a
// time of weir_now_us(). Those who wait for one key are served in order of arrival.
weir_status weir_wait(weir_limiter* limiter, const weir_limit* limit, const char* key, size_t key_bytes, int64_t cost,
                      int64_t deadline_us, weir_decision* decision);

// The time that the next decision is made at: microseconds since the Unix epoch. -1 without a limiter.
int64_t weir_now_us(const weir_limiter* limiter);
// Live keys.
size_t weir_size(const weir_limiter* limiter);
// A slice of the work that sweep_by_hand leaves to the caller, well below a millisecond. 1 if that ended a round
// through all keys: then rest, for a second or so; else 0.
int32_t weir_sweep(weir_limiter* limiter);

#ifdef __cplusplus
}
#endif
