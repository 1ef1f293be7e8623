# The man pages are complete: each command and option that --help names, each key of the schema. man itself finds
# nothing wrong with them.
source "$(dirname "$0")/lib.bash"

# check_page NAME: man prints it, without a warning.
check_page() {
  "$program" manual "$1" >"$work/$1.roff"
  is "$1: exit code" 0 $?
  if command -v man >/dev/null; then
    is "$1: man has no warning" "" "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z \
      "$work/$1.roff" 2>&1 >/dev/null)"
  fi
  page=$(sed -e 's/\\-/-/g' -e 's/\\f[BIR]//g' "$work/$1.roff")
}

# options_of WORDS...: the long options that the help of this command names.
options_of() { "$program" "$@" --help | grep -oE '^ +(-[A-Za-z],)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'; }
# commands_of WORDS...: the commands below this one.
commands_of() {
  "$program" "$@" --help | awk '/^Subcommands:/{inside = 1; next} /^[^ ]/{inside = 0} inside && /^  [a-z]/{print $1}'
}

# check_command WORDS...: it and all below it are in the page.
commands=0 options=0 lacking=''
check_command() {
  local one text
  if (($# > 0)); then
    commands=$((commands + 1))
    text=$(awk -v title=".SS weir $*" '$0 == title {inside = 1; print; next} /^\.S[SH]/{inside = 0} inside' <<<"$page")
  else
    text=$page
  fi
  [ -n "$text" ] || lacking+=" weir $*;"
  for one in $(options_of "$@"); do
    options=$((options + 1))
    grep -qE "^(-[A-Za-z], )?$one( |,|\$)" <<<"$text" || lacking+=" weir $* $one;"
  done
  for one in $(commands_of "$@"); do check_command "$@" "$one"; done
}

check_page weir
check_command
is "weir(1) has every command and every option" "" "$lacking"
is "commands were looked for" yes "$([ "$commands" -ge 12 ] && echo yes || echo "$commands")"
is "options were looked for" yes "$([ "$options" -ge 50 ] && echo yes || echo "$options")"
has "weir(1) has examples" "weir serve --config weir.yaml" "$page"

check_page weir.yaml
lacking=''
keys=$("$program" schema | grep -oE '"[a-z_]+":\{"description"' | cut -d'"' -f2)
for key in $keys; do grep -qxE "([a-z]+\.)?$key" <<<"$page" || lacking+=" $key"; done
is "weir.yaml(5) has every key of the schema" "" "$lacking"
is "many of them were looked for" yes "$([ "$(wc -w <<<"$keys")" -ge 40 ] && echo yes)"

# Its example is one.
awk '/^\.EX/{inside = 1; next} /^\.EE/{exit} inside' <<<"$page" >"$work/weir.yaml"
has "the example of weir.yaml(5) is right" "rules, valid" "$("$program" validate --strict "$work/weir.yaml" 2>&1)"

has "a page that is not there" "weir.yaml" "$("$program" manual weirs 2>&1)"
finish
