# What fish completes: commands, options, words, files. Skipped, with a message, where fish is not
# available.
source "$(dirname "$0")/lib.bash"
provide fish

export HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work
"$program" completion fish >"$work/weir.fish"
is "fish can read it" "" "$(timeout 600 "$fish" --no-execute "$work/weir.fish" 2>&1)"
touch "$work/rules.yaml"
cd "$work" || exit 1

# typed TEXT: what fish offers behind it. A fish that was unpacked needs the path of its functions.
functions=$cache/fish/usr/share/fish/functions
typed() {
  timeout 600 "$fish" --no-config -c "test -d $functions; and set fish_function_path $functions
    source weir.fish; complete -C '$1'" 2>&1 | cut -f1 | paste -sd'|'
}
is "a command" "serve" "$(typed 'weir se')"
is "a command below a command" "inspect" "$(typed 'weir state in')"
is "an option" "--connections" "$(typed 'weir serve --conn')"
is "a file" "rules.yaml" "$(typed 'weir serve --config ru')"
is "a file that has no option" "rules.yaml" "$(typed 'weir validate ru')"
is "a word of a few" "bash" "$(typed 'weir completion b')"
is "nothing where all may stand" "" "$(typed 'weir serve --http ru')"
finish
