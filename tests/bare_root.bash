# Helpers for tests in a bare Debian: a root with only what Debian always has, made once and kept in
# ${WEIR_CACHE:-build/cache}, and commands that run inside. Sourced after server/lib.bash, by tests/*_long.sh.
#
# The root gets its packages from the mirrors of this machine. Without root rights, mmdebstrap or the packages, a test
# ends here and says what is missing.
. "$source/tests/server/fetch.bash"

# The mirrors and proxies of this machine's apt, for mmdebstrap and for apt inside.
proxies() { apt-config dump 2>/dev/null | grep -E '^Acquire::[A-Za-z:]*Proxy' || true; }
mirrors() { grep -lsw bookworm /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; }

fill_root() {
  local include=$1 options=() line
  while read -r line; do [ -z "$line" ] || options+=("--aptopt=$line"); done <<<"$(proxies)"
  local from
  mapfile -t from < <(mirrors)
  timeout 1500 mmdebstrap --mode=root --variant=minbase ${include:+"--include=$include"} "${options[@]}" bookworm root \
    "${from[@]}"
}

# bare_root NAME [PACKAGES]: a fresh copy of the root of this name, at $root; packages are separated by commas.
bare_root() {
  [ "$(id -u)" == 0 ] || missing "$1" "cannot be entered (needs to be root)"
  command -v mmdebstrap >/dev/null || missing "$1" "cannot be made (needs mmdebstrap)"
  fetch_once "$1" fill_root "${2:-}" || missing "$1" "cannot be fetched (needs Debian's packages)"
  root=$work/$1
  cp -a "$cache/$1/root" "$root"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  proxies >"$root/etc/apt/apt.conf.d/99of-this-machine"
}

# inside COMMAND...: in the root, with this machine's network, /proc and /dev, and nothing of its environment but what
# WEIR_INSIDE says. What is mounted is mounted for that command only; the root itself is, too, so that programs inside
# find their own in the list of mounts. As a program, $inside ROOT COMMAND..., it becomes
# the command, whose process id is then known.
inside=$work/inside
cat >"$inside" <<'SCRIPT'
#!/usr/bin/env bash
exec unshare --mount bash -c 'root=$1; shift
  mount --bind "$root" "$root" && mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" || exit 1
  [ ! -d "$root/ccache" ] || mount --bind "$CCACHE_DIR" "$root/ccache" || exit 1
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${WEIR_INSIDE:-} chroot "$root" "$@"' - "$@"
SCRIPT
chmod +x "$inside"
inside() { "$inside" "$root" "$@"; }

# quietly NAME COMMAND...: it ends well; what it says is kept in $said, and shown if it does not.
quietly() {
  local name=$1
  shift
  said=$("$@" 2>&1 </dev/null)
  is "$name" 0 "$?"
  [ "$failures" -eq 0 ] || { echo "$said" | tail -n 40; finish; }
}
