# attack_sockets.sh with the full numbers: 2,000 slow senders of each protocol, 10,000 idle connections beside 1,000
# active ones, 50,000 resets; and with the times that hold on a machine that does nothing else.
slow=2000 header_timeout=10 idle=10000 active=1000 resets=50000
source "$(dirname "$0")/attack_sockets.sh"
