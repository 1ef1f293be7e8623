# attack_http2.sh with nothing beside it: while each attack is made, the slowest hundredth of others is at most twice as
# slow as in peace, and 5 ms, for which the kernel may let the attacker run before them: three processes are busy, and
# there may be two cores. The median of three rounds.
rounds=3
source "$(dirname "$0")/attack_http2.sh"
