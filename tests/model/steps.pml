/*
 * Pieces of steps, used inside the `atomic` blocks of participant.pml: what is entered into an operation, what is
 * copied from it and forgotten. They work on the participant's own variables and on at most one shared place.
 */

/* Enters a unit into the verdict's operation, ascending by unit. */
inline enter(at_unit, old_word, next_word) {
  d_step {
    j = m;
    do
    :: j > 0 && (my_unit[j - 1] > at_unit) ->
      my_unit[j] = my_unit[j - 1]; my_old[j] = my_old[j - 1]; my_next[j] = my_next[j - 1]; j--
    :: else -> break
    od;
    my_unit[j] = at_unit; my_old[j] = old_word; my_next[j] = next_word;
    m++; j = 0
  }
}

/* Is u in the operation already? Sets taken. */
inline find_taken() {
  d_step {
    taken = false; j = 0;
    do
    :: j < m -> taken = taken || my_unit[j] == u; j++
    :: else -> break
    od;
    j = 0
  }
}

inline next_key() {
  i++; v = 0; u = 0; candidate = 0; candidate_word = 0; version = 0;
  if
  :: i < 2 && key[i] != 0 -> goto find
  :: else -> i = 0; if :: m == 1 -> goto one_unit :: else -> goto raise fi
  fi
}

/* v, plain, was read from u and holds key[i]. */
inline use_found() {
  if
  :: cost[i] == REMOVE -> if :: state_of(v) == 0 -> goto remove :: else -> goto next_call fi
  :: cost[i] != REMOVE && state_of(v) + need(cost[i]) > LIMIT ->
    require(denial_true, admitted[key[i]] + need(cost[i]) > LIMIT);
    goto denied
  :: else ->
    if
    :: key[1] == 0 -> goto charge
    :: key[1] != 0 && BUG == 19 && cost[i] == LOOK -> next_key()
    :: else -> enter(u, v, plain(v, state_of(v) + cost[i])); next_key()
    fi
  fi
}

inline finish(at_unit, marked, then) {
  c_unit = at_unit; c_word = marked; c_back = then; v = 0; w = 0;
  goto complete
}

/* v, marked, was read from u: bring whoever marked it to his end, then go back. */
inline settle(where) {
  back = where;
  if
  :: mark_of(v) == CLAIMED -> finish(u, v, AFTER_SETTLE)
  :: else -> k = state_of(v); v = 0; goto help
  fi
}

/* No unit is marked so by us: what the mark names is about to be over. */
inline require_no(mark) {
  d_step {
    g = 0;
    do
    :: g < UNITS -> require(marks_live, mark_of(unit[g]) != mark || who_of(state_of(unit[g])) != me); g++
    :: else -> break
    od;
    g = 0
  }
}

/* The descriptor of our own operation, all of it. */
inline write_entries() {
  d_step {
    count[me] = m; j = 0;
    do
    :: j < m ->
      entry_unit[at(me, j)] = my_unit[j]; entry_old[at(me, j)] = my_old[j]; entry_next[at(me, j)] = my_next[j];
      my_unit[j] = 0; my_old[j] = 0; my_next[j] = 0; j++
    :: else -> break
    od;
    m = 0; j = 0
  }
}

inline forget_mine() {
  d_step {
    do
    :: m > 0 -> m--; my_unit[m] = 0; my_old[m] = 0; my_next[m] = 0
    :: else -> break
    od
  }
}
inline forget_operation() {
  d_step {
    k = 0; n = 0; x = 0; e_unit = 0; e_old = 0; w = 0; is_done = false;
    early[0] = 0; early[1] = 0; early[2] = 0
  }
}

/* A seeded bug: the old words of an operation, before anything is known of it. */
inline copy_early() {
  d_step {
    early[0] = entry_old[at(who_of(k), 0)];
    early[1] = entry_old[at(who_of(k), 1)];
    early[2] = entry_old[at(who_of(k), 2)]
  }
}

/* Is w the mark of operation k? And what the entry that we are at says its unit becomes. */
#define holds(w, k) (mark_of(w) == HELD && \
                     (BUG == 14 -> who_of(state_of(w)) == who_of(k) : state_of(w) == k))
#define release_to (is_done -> entry_next[at(who_of(k), x)] : entry_old[at(who_of(k), x)])
