# zsh can read its completions, and each command has a function that hands its options to _arguments.
# Skipped by name where zsh cannot be had.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/fetch.bash"
provide zsh

"$program" completion zsh >"$work/_weir"
is "zsh can read it" "" "$(timeout 600 "$zsh" -n "$work/_weir" 2>&1)"

# What stands in for zsh's own functions tells what it was given; outside of a line editor they cannot run.
cat >"$work/ask.zsh" <<'ZSH'
_arguments() { print -rl -- "$@"; state=$wanted; line=($word); }
_describe() { print -rl -- "${(@P)2}"; }
compdef() { :; }
source "$1"
wanted=$2 word=$3
_weir
ZSH
typed() { timeout 600 "$zsh" -f "$work/ask.zsh" "$work/_weir" "$@" 2>&1; }
has "the commands" "serve:Run the server" "$(typed command '')"
has "a file" "--config=[Config file with the rules]:FILE:_files" "$(typed argument serve)"
has "a flag" "--force[" "$(typed argument serve)"
has "a word of a few" ":WORD:(bash zsh fish)" "$(typed argument completion)"
has "what may be repeated" "*--header=[" "$(typed argument explain)"
finish
