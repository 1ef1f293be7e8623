# Clocks that disagree: servers whose wall clocks are 30 seconds apart share one limit as if they did not (F14), and the
# clock of Redis jumps while they do (F15). Decisions are made on the clock of Redis, and deadlines on its offset to a
# server's clock since boot, which is learnt from every answer.
source "$(dirname "$0")/fleet_fault.bash"
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null | head -1)
[ -n "$faketime" ] || { echo "skip  libfaketime is not here; ./dev setup brings it"; exit 77; }
cat >>"$work/weir.yaml" <<'YAML'
  - {name: refills, match: {path: /refills}, per: user, limit: 6/min burst 12, algorithm: token_bucket}
  - {name: slides, match: {path: /slides}, per: user, limit: 12/min, algorithm: sliding_log}
  - {name: months, match: {path: /months}, per: user, limit: 12/calendar_month, on_backend_error: closed}
YAML
# faked NAME COMMAND: a script that runs the command with the wall clock that the file NAME sets. The C library's
# allocator comes before that of Redis, which asks for the time before libfaketime can tell it.
faked() {
  cat >"$work/run_$1" <<TEXT
#!/bin/sh
export LD_PRELOAD="$faketime libc.so.6" FAKETIME_TIMESTAMP_FILE=$work/$1
export FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
exec $2 "\$@"
TEXT
  chmod +x "$work/run_$1"
}
set_clock() { echo "$2" >"$work/.clock" && mv "$work/.clock" "$work/$1"; }
redis_time() { timeout 60 redis-cli -p "$redis_port" TIME | head -1; }

true_program=$program
# All are behind the true time, since libfaketime lets absolute timers go off too early where it is ahead: Redis by 31
# seconds, the servers by 30 more, 0.5 less and 30 less.
set_clock redis "-31"
faked redis ""
redis_before=("$work/run_redis")
start_redis
set_clock redis "+3569"
shown=$(redis_time)
is "the clock of Redis can be set" 3500 $(((shown - $(date +%s)) / 100 * 100))
set_clock redis "-31"
for clock in -61 -30.5 -1; do
  set_clock "wall$clock" "$clock"
  faked "wall$clock" "$true_program"
  program=$work/run_wall$clock
  start_server --config "$work/weir.yaml" --store "redis://127.0.0.1:$redis_port" --drain-delay 0 \
    --store-deadline 1000 --threads 1
  https+=("$http")
done
for n in 0 1 2; do until_true 20 is_strict "$n" || is "server $n asks Redis" yes no; done

# spends NAME USER PATH LEAST MOST: of 36, on all three in turn; a bucket refills a permit in ten seconds of the test.
spends() {
  local began passed
  began=$(now_us)
  passed=$(spend 12 "$2" "$3" 0 1 2)
  is "$1: $passed passed, $4 to $5 and one for each ten seconds" yes \
    "$( ((passed >= $4 && passed <= $5 + ($(now_us) - began) / 10000000 + 1)) && echo yes)"
  for n in 0 1 2; do is "$1: server $n asks Redis" yes "$(until_true 20 is_strict "$n" && echo yes)"; done
}
echo "# F14 the servers' clocks disagree"
spends "a bucket" a /refills 12 12
spends "a log" a /slides 12 12

echo "# F15 the clock of Redis jumps"
# Uses up a key exactly: no check is denied, so no server caches a denial.
spent_up() { is "all of $1" 12 "$(spend 4 "$1" "$2" 0 1 2)"; }
spent_up b /refills
spent_up b /slides
set_clock redis "+3600"
spends "an hour on: one burst more" b /refills 12 12
spends "an hour on: one window more" b /slides 12 12
spent_up c /refills
spent_up c /slides
set_clock redis "-3600"
spends "two hours back: nothing" c /refills 0 0
spends "two hours back: nothing" c /slides 0 0
spends "two hours back: a new key is as any" d /refills 12 12
spent_up e /refills
set_clock redis "-86400"
spends "a day back: nothing" e /refills 0 0
spent_up f /refills
set_clock redis "-31"
spends "a day on: one burst more" f /refills 12 12
spent_up g /months
set_clock redis "-6048000"
spends "ten weeks back: a quota of months is as any" h /months 12 12
set_clock redis "-31"
spends "ten weeks on: what was spent before is spent" g /months 0 0
finish
