# Runs the test that sources this file in a network of its own, where a firewall drops the packets that the test wants
# lost. Skips the test where that is not allowed. To be sourced first.
if [ "${WEIR_IN_NETWORK:-}" != yes ]; then
  PATH=$PATH:/usr/sbin:/sbin
  test_name=$(basename "$0" .sh)
  for tool in ip nft unshare; do
    command -v "$tool" >/dev/null || { echo "skip  $test_name: needs $tool"; exit 77; }
  done
  if ! unshare -rn sh -c 'ip link set lo up && nft add table inet trial' 2>/dev/null; then
    echo "skip  $test_name: no network of its own is permitted here"
    exit 77
  fi
  export PATH
  WEIR_IN_NETWORK=yes exec unshare -rn bash "$0" "$@"
fi
ip link set lo up
