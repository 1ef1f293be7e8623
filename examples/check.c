// What a C program can do: check one limit, check several at once, wait, and reserve for work whose cost is known only
// afterwards. It prints the answers. On an error it prints the reason and exits with 1.
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static void must(weir_status status, const char* what) {
  if (status == WEIR_OK) return;
  fprintf(stderr, "%s: %s (error %d)\n", what, weir_last_error(), (int)status);
  exit(1);
}

int main(void) {
  weir_limiter* limiter = NULL;
  weir_limit *minute = NULL, *bucket = NULL, *tokens = NULL;
  weir_decision decision, decisions[2];
  int32_t allowed = 0;

  if (weir_abi_version() != WEIR_ABI_VERSION) return fprintf(stderr, "the library has another ABI version than its header\n"), 1;
  must(weir_open(NULL, &limiter), "open");
  must(weir_compile(NULL, "100/minute", &minute), "limit");
  must(weir_compile("token_bucket", "50/s burst 5", &bucket), "limit");
  must(weir_compile(NULL, "10000/hour burst 10000", &tokens), "limit");

  must(weir_check(limiter, minute, "user:42", WEIR_STRING, 1, &decision), "check");
  printf("check: allowed %d, remaining %d\n", (int)decision.allowed, (int)decision.remaining);

  const weir_charge both[] = {{"user:42", WEIR_STRING, minute, 1}, {"address:10.0.0.7", WEIR_STRING, bucket, 1}};
  must(weir_check_all(limiter, both, 2, &allowed, decisions, NULL), "check all");
  printf("both: allowed %d, remaining %d and %d\n", (int)allowed, (int)decisions[0].remaining,
         (int)decisions[1].remaining);

  for (int i = 0; i < 6; ++i) {  // more than the burst: the last permit comes at the bucket's rate
    const int64_t deadline_us = weir_now_us(limiter) + 10 * 1000 * 1000;
    must(weir_wait(limiter, bucket, "mails", WEIR_STRING, 1, deadline_us, &decision), "wait");
    if (!decision.allowed) return fprintf(stderr, "no permit within ten seconds\n"), 1;
  }
  printf("wait: allowed %d\n", (int)decision.allowed);

  char id[WEIR_RESERVATION_BYTES];
  weir_charge work = {"tenant:7", WEIR_STRING, tokens, 4000};
  must(weir_reserve(limiter, &work, 1, 0, id, &allowed, NULL), "reserve");
  if (!allowed) return fprintf(stderr, "not enough is left\n"), 1;
  work.cost = 1234;  // what the work really cost
  must(weir_commit(limiter, id, &work, 1, &decision), "commit");
  printf("commit: remaining %d\n", (int)decision.remaining);

  weir_limit_free(tokens);
  weir_limit_free(bucket);
  weir_limit_free(minute);
  weir_close(limiter);
  return 0;
}
