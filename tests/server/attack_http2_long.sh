# attack_http2.sh with nothing beside it. During each attack, the p99 of other clients is at most twice the calm one
# plus 5 ms: three processes are busy on perhaps two cores, so the kernel may run the attacker first. The median of
# three rounds.
rounds=3
source "$(dirname "$0")/attack_http2.sh"
