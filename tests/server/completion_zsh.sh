# zsh can read its completions, and each command has a function that gives its options to _arguments. Skipped, with a
# message, where zsh is not available.
source "$(dirname "$0")/lib.bash"
provide zsh

"$program" completion zsh >"$work/_weir"
is "zsh can read it" "" "$(timeout 600 "$zsh" -n "$work/_weir" 2>&1)"

# These replace functions of zsh that run only in its line editor. They print their arguments.
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
