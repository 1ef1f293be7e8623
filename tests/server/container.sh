# A container of 136 MiB, a table of 64 MiB, and more new keys than fit. The kernel kills no process, with the table in
# memory and in a state file. Skipped where the test cannot make a memory control group.
source "$(dirname "$0")/lib.bash"
limit=$((136 << 20)) budget=$((64 << 20))
group=/sys/fs/cgroup/memory/weir-test-$$ bound=memory.limit_in_bytes peak=memory.max_usage_in_bytes
if [ ! -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/weir-test-$$ bound=memory.max peak=memory.peak
fi
mkdir "$group" 2>/dev/null && echo "$limit" 2>/dev/null >"$group/$bound" ||
  { rmdir "$group" 2>/dev/null; echo "skip  no memory control group can be made here"; exit 77; }
trap 'cleanup; until_true 5 rmdir "$group" 2>/dev/null' EXIT

printf '#!/bin/sh\necho $$ >%s/cgroup.procs || exit 1\nexec "%s" "$@"\n' "$group" "$program" >"$work/contained"
chmod +x "$work/contained"
load_program=$program
program=$work/contained
for state in "" "--state $work/state"; do
  start_server --memory "$budget" $state
  is "${state:+state file: }it is in the group" yes "$(grep -q "^$pid\$" "$group/cgroup.procs" && echo yes)"
  # Logs live beside the table's pages: together they touch all of the budget. Those that do not fit are refused.
  for command in 'CL.THROTTLE {key} 9 10 8640000' 'WEIR.LIMIT {key} 9/month ALGORITHM sliding_log'; do
    out=$(timeout 600 "$load_program" bench --json --resp ":$resp_port" --each-key --keys 500000 --command "$command")
    is "${state:+state file: }500,000 new keys are answered: ${command%% *}" 500000 "$(number checks "$out")"
  done
  is "${state:+state file: }the server was not killed" 0 "$(is_gone "$pid"; echo $((1 - $?)))"
  still_answers "${state:+state file: }after it"
  stop_server
done
[ -r "$group/$peak" ] &&
  echo "      at most $(($(cat "$group/$peak") >> 20)) MiB of $((limit >> 20)), the files' pages included"
is "the kernel killed no process" 0 "$(cat "$group"/memory.oom_control "$group"/memory.events 2>/dev/null |
  awk '/^oom_kill /{n += $2} END {print n + 0}')"
finish
