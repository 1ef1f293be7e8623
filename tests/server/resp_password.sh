# Guessing the password of the RESP port: the server answers every wrong one late, also in a pipeline, counts and logs
# it. Clients with the right password do not notice.
source "$(dirname "$0")/lib.bash"
echo 'open sesame' >"$work/password"
chmod 600 "$work/password"
start_server --password-file "$work/password"
wrong='WRONGPASS invalid username-password pair or user is disabled.'
# tries COMMAND...: its reply, and whether it took a quarter of a second.
tries() {
  local begun reply
  begun=$(now_us)
  reply=$(printf '%s\n' "$@" | redis)
  echo "$reply $([ $(($(now_us) - begun)) -ge 250000 ] && echo late)"
}
refused() { metric 'weir_refused_total{protocol="resp",reason="password"}'; }

is "without a password" "NOAUTH Authentication required." "$(redis ping)"
is "which is no guess" 0 "$(refused)"
is "a wrong one" "$wrong late" "$(tries 'AUTH guess' | sed 's/  */ /g')"
is "another user" "$wrong late" "$(tries 'AUTH bob "open sesame"' | sed 's/  */ /g')"
is "by HELLO" "$wrong late" "$(tries 'HELLO 3 AUTH default guess' | sed 's/  */ /g')"
is "each is counted" 3 "$(refused)"
logged() { grep -q 'weir: wrong RESP password from=127.0.0.1 times=' "$work/err0"; }
eventually "and logged" logged
is "but not what was sent" 0 "$(grep -c guess "$work/err0")"
is "the right one" "OK PONG" "$(printf 'AUTH "open sesame"\nPING\n' | redis)"
is "by redis-cli's own option" PONG "$(REDISCLI_AUTH='open sesame' redis ping)"

# A pipeline of guesses on one connection: one after the other, so within a second at most four are looked at.
begun=$(now_us)
{ printf 'AUTH x\r\n%.0s' {1..8} && printf 'AUTH default "open sesame"\r\nQUIT\r\n'; } |
  raw "$resp_port" 60 >"$work/replies"
spent=$(($(now_us) - begun))
is "eight guesses in a pipeline, then the right one" "8 2" \
  "$(grep -c WRONGPASS "$work/replies") $(grep -c '^+OK' "$work/replies")"
is "took two seconds at least ($spent us)" yes "$([ "$spent" -ge 2000000 ] && echo yes)"

# Many connections that guess: the log stays short, and a client with the password is answered.
lines=$(grep -c 'wrong password' "$work/err0")
begun=$(now_us)
for i in $(seq 60); do
  redis AUTH "guess-$i" >/dev/null &
  guesses[i]=$!
done
is "while other clients guess" PONG "$(REDISCLI_AUTH='open sesame' redis ping)"
wait "${guesses[@]}"
seconds=$((($(now_us) - begun) / 1000000 + 1))
is "all are counted" 71 "$(refused)"
more=$(($(grep -c 'wrong password' "$work/err0") - lines))
threads=$(nproc)
is "and few are logged ($more lines in $seconds s)" yes "$([ "$more" -le $(((seconds + 1) * threads)) ] && echo yes)"

# Where there is no password, none is guessed.
start_server
is "without one, an unknown user is refused at once" "$wrong" "$(redis AUTH bob x)"
is "and not counted" 0 "$(refused)"
finish
