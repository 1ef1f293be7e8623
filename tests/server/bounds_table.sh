# The table of bounds in docs/operate.md has every flag of `weir serve --help`, with its default. Compares texts; needs
# no server.
source "$(dirname "$0")/lib.bash"
table=$(sed -n '/^## Bounds and overload/,/^## /p' "$2/docs/operate.md" |
  sed -n 's/^| `\(--[a-z-]*\)` | \([a-z0-9]*\) |.*/\1 \2/p' | sort)
# `--flag UNIT=DEFAULT …` of the group of bounds
flags=$("$program" serve --help | sed -n '/^Bounds:/,/^[A-Za-z].*:$/p' |
  sed -n 's/^  *\(--[a-z-]*\) [^ =]*=\([a-z0-9]*\).*/\1 \2/p' | sort)
is "the table names every bound, and each default" "$flags" "$table"
is "there are as many as there are" 20 "$(wc -l <<<"$flags")"

# Each is a setting: what is out of its range is refused by name.
while read -r flag _; do
  told=$(timeout 600 "$program" serve "$flag" x 2>&1)
  is "$flag x is refused" 2 "$?"
  has "  by name" "$flag" "$told"
done <<<"$flags"
finish
