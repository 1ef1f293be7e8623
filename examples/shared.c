// Several processes, one limit, no server. Each process opens the same state file, charges one key TIMES times, and
// prints how many charges were admitted. Any number of processes together admit exactly the limit.
//
//   ./shared state.weir 10000   (in as many terminals as you like)
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, weir_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: shared FILE TIMES\n"), 2;
  const long times = strtol(argv[2], NULL, 10);
  long admitted = 0;
  weir_options options = WEIR_OPTIONS;
  weir_limiter* limiter = NULL;
  weir_limit* limit = NULL;
  weir_decision decision;

  options.file = argv[1];
  if (weir_open(&options, &limiter) != WEIR_OK) return failed("open");
  // A window of a year almost never ends while this runs.
  if (weir_compile("fixed_window", "1000/year", &limit) != WEIR_OK) return failed("limit");
  for (long i = 0; i < times; ++i) {
    if (weir_check(limiter, limit, "everybody", WEIR_STRING, 1, &decision) != WEIR_OK) return failed("check");
    admitted += decision.allowed;
  }
  printf("%ld\n", admitted);
  weir_limit_free(limit);
  weir_close(limiter);
  return 0;
}
