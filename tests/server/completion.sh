# Asks bash what it completes: commands, options, the words that an option accepts, and files. Completion knows
# everything that the help of a command names.
source "$(dirname "$0")/lib.bash"

"$program" completion bash >"$work/weir.bash"
is "exit code" 0 $?
is "bash can read it" "" "$(bash -n "$work/weir.bash" 2>&1)"
mkdir "$work/files"
touch "$work/files/rules.yaml" "$work/files/rules two.yaml" "$work/files/other.txt"

# typed WORD...: what bash offers when TAB is pressed behind the last word, sorted, on one line.
typed() {
  (
    cd "$work/files" && source "$work/weir.bash"
    COMP_WORDS=(weir "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    "$(complete -p weir | sed -E 's/.*-F ([^ ]+) .*/\1/')" weir "${COMP_WORDS[COMP_CWORD]}" \
      "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
    printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd'|'
  )
}
is "a command" "serve" "$(typed se)"
is "several" "schema|serve|state" "$(typed s | tr '|' '\n' | grep -E 'schema|serve|state' | paste -sd'|')"
is "a command below a command" "inspect" "$(typed state in)"
is "an option" "--connections" "$(typed serve --conn)"
is "behind other options" "--settings" "$(typed serve --http :0 --sett)"
is "of a group" "--resp" "$(typed bench --res)"
is "a file" "rules two.yaml|rules.yaml" "$(typed serve --config ru)"
is "a file behind =" "rules two.yaml|rules.yaml" "$(typed serve --config = ru)"
is "all files behind =" "other.txt|rules two.yaml|rules.yaml" "$(typed serve --config =)"
is "a file that has no option" "rules two.yaml|rules.yaml" "$(typed validate ru)"
is "an option before it" "--against" "$(typed validate --ag)"
is "a word of a few" "bash" "$(typed completion b)"
is "nothing where all may stand" "" "$(typed serve --http ru)"
is "an option that only another command has" "" "$(typed validate --resp)"

# Everything there is.
lacking=''
for command in $("$program" --help | awk '/^Subcommands:/{inside = 1; next} inside && /^  [a-z]/{print $1}'); do
  [ "$(typed "$command")" == "$command" ] || [[ "|$(typed "$command")|" == *"|$command|"* ]] || lacking+=" $command"
  offered="|$(typed "$command" --)|"
  for option in $("$program" "$command" --help | grep -oE '^ +(-[A-Za-z],)?--[a-z0-9-]+' | sed 's/.*--/--/'); do
    [[ $offered == *"|$option|"* ]] || lacking+=" $command $option"
  done
done
is "every command and option is offered" "" "$lacking"
has "no such shell" "bash,zsh,fish" "$("$program" completion tcsh 2>&1)"
finish
