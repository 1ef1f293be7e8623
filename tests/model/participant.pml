/*
 * One participant: a thread at work that answers its script's calls one after the other. Promela knows no calls that
 * return, so what the program does in functions is here a place to jump to, and `back` and `c_back` say where to go on.
 *
 * A label before an `atomic` begins a new step; a label inside one continues the step of whoever jumps there.
 * Variables are set back to 0 once they are of no use, so that states that differ in nothing are one state.
 */

/* Where to go on after settling another's mark, and after a conditional install. */
mtype = { OWN, AT_HIT, AT_VERSION, AT_SCAN, AT_VERSION_AGAIN, AT_SOLO, AT_DRIVE, AT_RECOVER };
mtype = { AFTER_SETTLE, AFTER_INSTALL, AFTER_RELEASE, AFTER_RECOVER };

/* Where -DFINE allows another to step in between. */
#ifdef FINE
#define FINER } atomic {
#else
#define FINER
#endif

#include "steps.pml"

proctype participant(byte me; bool heir) {
  byte call = (heir -> HEIR_CALL : 0);
  byte key[2];                         /* the call: up to two keys and what they cost */
  short cost[2];
  byte tries, i, u, m, candidate;      /* the try: which key, which unit, how many units in the operation */
  short v, version, candidate_word;
  byte my_unit[ENTRIES];
  short my_old[ENTRIES], my_next[ENTRIES];
  byte mine, p;                        /* our own operation, and the entry it is at while solo */
  bool deny, ok;
  byte k, n, x;                        /* the operation worked at, how many entries it has, the one we are at */
  byte e_unit;                         /* what we read of that entry */
  short e_old, w;
  bool is_done;
  short early[ENTRIES];                /* only with bug 10 */
  mtype back = OWN, c_back;
  byte c_unit, c_old, c_ref;           /* a conditional install, ours or another's */
  short c_word;
  bool c_open;
  byte j, g;                           /* within a step, and the status that abort and recover compare */
  bool taken;

  {
    atomic {
      if
      :: heir -> goto recover
      :: else -> goto next_call
      fi;
allowed:
      require(counted_once, committed[me] == 1);
      goto next_call;
denied:
      require(counted_once, committed[me] == 0);
next_call:
      skip;
      forget_mine();
      d_step {
        key[0] = 0; key[1] = 0; cost[0] = 0; cost[1] = 0; u = 0; v = 0; i = 0; deny = false; tries = FIRST_TRY;
        committed[me] = 0;
        g = 1;
        do
        :: g < KEYS -> want[ghost(me, g)] = 0; looks[ghost(me, g)] = false; g++
        :: else -> break
        od;
        plan();
        call++;
        g = 0;
        do
        :: g < 2 && key[g] != 0 ->
          if
          :: cost[g] == LOOK -> looks[ghost(me, key[g])] = true
          :: cost[g] == REMOVE -> skip
          :: else -> want[ghost(me, key[g])] = cost[g]
          fi;
          g++
        :: else -> break
        od;
        g = 0
      };
      if
      :: key[0] == 0 -> over = over | 1 << me; goto end
      :: else -> skip
      fi
    }

    /* -- Finding the keys. A hint first; whoever uses it reads the 16 bytes. */
find:
    atomic {
      u = 1;
      do
      :: u < UNITS && tag_of(unit[u]) != key[i] -> u++
      :: else -> break
      od;
      if
      :: u == UNITS -> goto read_version
      :: else -> skip
      fi
    }
hit:
    atomic {
      v = unit[u];
      if
      :: BUG == 5 -> v = v - state_of(v) /* two reads of 8 bytes: the tag now, the state in the next step */
      :: else -> goto have_read
      fi
    }
    atomic {
      v = v | state_of(unit[u]);
have_read:
      if
      :: mark_of(v) != PLAIN -> settle(AT_HIT)
      :: mark_of(v) == PLAIN && tag_of(v) == key[i] -> use_found()
      :: else -> goto read_version
      fi
    }
read_version:
    atomic {
      u = 0; v = unit[0];
      if
      :: mark_of(v) != PLAIN -> settle(AT_VERSION)
      :: else -> version = v; v = 0; candidate = 0; candidate_word = 0; u = 1
      fi
    }
scan: /* a marked unit may hold our key, committed and not yet written */
    atomic {
      v = unit[u];
      if
      :: mark_of(v) != PLAIN && BUG != 6 -> settle(AT_SCAN)
      :: mark_of(v) == PLAIN && tag_of(v) == key[i] -> use_found()
      :: else ->
        find_taken();
        taken = taken || (BUG != 8 && tag_of(v) != 0 && (tag_of(v) == key[0] || tag_of(v) == key[1]));
        if
        :: candidate == 0 && mark_of(v) == PLAIN && state_of(v) == 0 && !taken -> candidate = u; candidate_word = v
        :: else -> skip
        fi;
        taken = false; v = 0; u++;
        if
        :: u < UNITS -> goto scan
        :: else -> skip
        fi
      fi
    }
read_version_again: /* unchanged: the key is absent now */
    atomic {
      u = 0; v = unit[0];
      if
      :: mark_of(v) != PLAIN -> settle(AT_VERSION_AGAIN)
      :: mark_of(v) == PLAIN && v != version && BUG != 20 -> goto read_version
      :: else -> version = v
      fi;
      if
      :: cost[i] < 0 -> goto next_call                   /* nothing to give back, nothing to remove */
      :: cost[i] >= 0 && candidate == 0 -> goto denied   /* no room */
      :: else -> enter(candidate, candidate_word, word(PLAIN, key[i], cost[i]))
      fi;
      find_taken(); /* two new keys share their page's version */
      if
      :: !taken && BUG != 3 -> enter(0, version, word(PLAIN, tag_of(version) + 1, 0))
      :: else -> skip
      fi;
      taken = false;
      next_key()
    }

    /* -- One unit is one CAS. */
charge:
    atomic {
      if
      :: unit[u] == v -> unit[u] = plain(v, state_of(v) + cost[i]); commit(me); goto allowed
      :: BUG == 11 && unit[u] != v && mark_of(unit[u]) == PLAIN && state_of(unit[u]) == state_of(v) ->
        unit[u] = unit[u] + cost[i]; commit(me); goto allowed
      :: else -> v = 0; goto hit
      fi
    }
remove:
    atomic {
      if
      :: unit[u] == v -> unit[u] = 0
      :: else -> skip
      fi;
      goto next_call
    }
one_unit:
    atomic {
      if
      :: unit[my_unit[0]] == my_old[0] -> unit[my_unit[0]] = my_next[0]; commit(me); goto allowed
      :: else -> forget_mine(); goto find
      fi
    }

    /* -- Our own operation: a new sequence number first, then the entries. */
#define is_solo (tries < SOLO_TRIES || BUG == 18)
raise:
    atomic {
      require_no(HELD);
      g = (status[me] >> 2) + 1;
      require(few_tries, g < SEQUENCES);
      mine = reference(me, g); g = 0;
      released = released & ~(1 << me);
      if
      :: BUG == 21 -> write_entries()
      :: else -> status[me] = status_of(mine, (is_solo -> SOLO : HELP))
      fi
    }
    atomic {
      if
      :: BUG == 21 -> status[me] = status_of(mine, (is_solo -> SOLO : HELP))
      :: else -> write_entries()
      fi;
      p = 0;
      if
      :: is_solo -> goto solo
      :: else -> k = mine; goto drive
      fi
    }

    /* -- Solo: only we install, others may only abort. An install that comes too late means the old word. */
#define my_entry at(me, p)
solo:
    atomic {
      if
      :: unit[entry_unit[my_entry]] == entry_old[my_entry] ||
         (BUG == 12 && mark_of(unit[entry_unit[my_entry]]) == PLAIN &&
          tag_of(unit[entry_unit[my_entry]]) == tag_of(entry_old[my_entry])) ->
        unit[entry_unit[my_entry]] = held(entry_old[my_entry], mine);
        p++;
        if
        :: p < count[me] -> goto solo
        :: else -> ok = true; goto decide
        fi
      :: else -> u = entry_unit[my_entry]; v = unit[u] /* a CAS that fails says what was there */
      fi;
      if
      :: mark_of(v) != PLAIN -> settle(AT_SOLO)
      :: else ->
        /* It moved on: compute this entry anew, or deny, or fail. */
        g = (key[0] == tag_of(v) -> 0 : 1);
        if
        :: tag_of(v) != tag_of(entry_old[my_entry]) || tag_of(v) != tag_of(entry_next[my_entry]) || u == 0 ->
          v = 0; g = 0; goto decide
        :: else -> skip
        fi;
        if
        :: state_of(v) + need(cost[g]) > LIMIT ->
          require(denial_true, admitted[key[g]] + need(cost[g]) > LIMIT);
          v = 0; g = 0; deny = true; goto decide
        :: else -> i = g; g = 0
        fi
      fi
    }
    atomic { entry_old[my_entry] = v }
    atomic { entry_next[my_entry] = plain(v, state_of(v) + cost[i]); v = 0; i = 0 }
solo_check:
    atomic {
      u = 0;
      if
      :: status[me] == status_of(mine, SOLO) -> goto solo
      :: else -> skip
      fi
    }
decide:
    atomic {
      u = 0; p = 0; k = mine;
      if
      :: status[me] == status_of(mine, SOLO) || (BUG == 16 && ok) ->
        status[me] = status_of(mine, (ok -> DONE : FAILED));
        if
        :: ok -> commit(me)
        :: else -> skip
        fi
      :: else -> skip
      fi;
      ok = false;
      goto decided
    }

    /* -- Bringing operation k to its end: decided, and out of all its units. */
help:
    atomic {
      if
      :: BUG == 10 -> copy_early()
      :: else -> goto help_look
      fi
    }
    atomic {
      skip;
help_look:
      g = status[who_of(k)];
      if
      :: (g >> 2) != sequence_of(k) && BUG != 4 -> g = 0; goto go_back
      :: else -> skip
      fi;
      if
      :: (g & 3) == SOLO && BUG == 17 -> g = 0; goto go_back
      :: (g & 3) == SOLO && BUG != 17 -> goto abort
      :: (g & 3) == HELP -> g = 0; goto drive
      :: else -> g = 0; goto decided
      fi
    }
abort:
    atomic {
      if
      :: status[who_of(k)] == g -> status[who_of(k)] = g | FAILED
      :: else -> skip
      fi;
      g = 0;
      goto decided
    }
drive: /* what is read of an entry counts only if the operation is still undecided after that */
    atomic {
      if
      :: n == 0 -> n = count[who_of(k)]
      :: else -> skip
      fi;
      FINER
      e_unit = entry_unit[at(who_of(k), x)];
      FINER
      e_old = entry_old[at(who_of(k), x)];
      if
      :: k == mine -> goto drive_look /* our own record, no access */
      :: else -> skip
      fi
    }
    atomic {
      skip;
drive_look:
      if
      :: status[who_of(k)] != status_of(k, HELP) -> goto decided
      :: else -> skip
      fi
    }
    atomic {
      w = unit[e_unit];
      if
      :: holds(w, k) ->
        w = 0; x++;
        if
        :: x < n -> goto drive
        :: else -> goto decide_done
        fi
      :: mark_of(w) == CLAIMED -> finish(e_unit, w, AFTER_INSTALL)
      :: mark_of(w) == HELD && !holds(w, k) ->
        if
        :: back == OWN -> back = AT_DRIVE
        :: else -> skip
        fi;
        j = state_of(w); forget_operation(); k = j; j = 0;
        goto help
      :: mark_of(w) == PLAIN && w != e_old -> goto decide_failed
      :: else -> w = 0; goto install
      fi
    }
decide_failed:
    atomic {
      if
      :: status[who_of(k)] == status_of(k, HELP) -> status[who_of(k)] = status_of(k, FAILED)
      :: else -> skip
      fi;
      goto decided
    }
decide_done:
    atomic {
      if
      :: status[who_of(k)] == status_of(k, HELP) -> status[who_of(k)] = status_of(k, DONE); commit(who_of(k))
      :: else -> skip
      fi
    }
decided:
    atomic {
      j = status[who_of(k)]; x = 0; n = 0; e_unit = 0; e_old = 0; w = 0;
      if
      :: (j >> 2) != sequence_of(k) && BUG != 4 -> j = 0; goto go_back
      :: else -> is_done = ((j & 3) == DONE); j = 0
      fi;
      if
      :: BUG == 15 && back == OWN -> goto next_release
      :: else -> skip
      fi
    }

    /* -- Release. An entry is final once its unit is held, so a helper reads it only then. */
release:
    atomic {
      if
      :: n == 0 -> n = count[who_of(k)]
      :: else -> skip
      fi;
      if
      :: x >= n -> goto next_release
      :: else -> e_unit = entry_unit[at(who_of(k), x)]
      fi;
      if
      :: back == OWN -> goto release_look /* our own record, no access */
      :: BUG == 10 && back != OWN -> w = (is_done -> release_to : early[x]); goto release_swap
      :: else -> skip
      fi
    }
release_again:
    atomic {
      skip;
release_look:
      w = unit[e_unit];
      if
      :: holds(w, k) && back == OWN -> unit[e_unit] = release_to; x++; goto next_release
      :: holds(w, k) && back != OWN -> skip
      :: !holds(w, k) && mark_of(w) == CLAIMED && BUG != 1 -> finish(e_unit, w, AFTER_RELEASE)
      :: else -> x++; goto next_release
      fi
    }
    atomic { w = release_to }
release_swap:
    atomic {
      if
      :: holds(unit[e_unit], k) -> unit[e_unit] = w; x++
      :: else -> w = 0; goto release_again
      fi;
next_release:
      w = 0;
      if
      :: x < n -> goto release
      :: x >= n && back != OWN -> goto go_back
      :: else ->
        mine = 0; released = released | 1 << me;
        if
        :: is_done -> forget_operation(); goto allowed
        :: !is_done && deny -> forget_operation(); goto denied
        :: else -> forget_operation(); tries++; goto find
        fi
      fi;
go_back: /* k is decided and released, or was over before: on with what we were at when we met it */
      skip;
      forget_operation();
      if
      :: back == AT_HIT -> back = OWN; goto hit
      :: back == AT_VERSION -> back = OWN; goto read_version
      :: back == AT_SCAN -> back = OWN; goto scan
      :: back == AT_VERSION_AGAIN -> back = OWN; goto read_version_again
      :: back == AT_SOLO -> back = OWN; goto solo_check
      :: back == AT_DRIVE -> back = OWN; k = mine; goto drive
      :: back == AT_RECOVER -> back = OWN; released = released | 1 << me; goto recover_install
      fi
    }

    /* -- The conditional install: old -> claimed -> held if k is still undecided, else old. */
install:
    atomic {
      if
      :: BUG == 2 ->
        if
        :: unit[e_unit] == e_old ->
          unit[e_unit] = held(e_old, k);
          require(marks_live, is_live(k))
        :: else -> skip
        fi;
        goto drive
      :: else ->
        require_no(CLAIMED);
        install_sequence[me]++;
        require(few_tries, install_sequence[me] < SEQUENCES)
      fi
    }
    atomic { install_unit[me] = e_unit; FINER install_old[me] = state_of(e_old); FINER install_ref[me] = k }
    atomic {
      if
      :: unit[e_unit] == e_old ->
        w = claimed(e_old, reference(me, install_sequence[me]));
        unit[e_unit] = w;
        finish(e_unit, w, AFTER_INSTALL)
      :: else -> goto drive
      fi
    }
complete:
    atomic { c_old = install_old[who_of(c_word)]; FINER c_ref = install_ref[who_of(c_word)] }
    atomic {
      if
      :: install_sequence[who_of(c_word)] != sequence_of(c_word) -> goto completed
      :: else -> skip
      fi
    }
    atomic { c_open = (status[who_of(c_ref)] == status_of(c_ref, HELP) || BUG == 7) }
    atomic {
      if
      :: unit[c_unit] == c_word ->
        unit[c_unit] = (c_open -> held(c_word, c_ref) : plain(c_word, c_old));
        require(marks_live, !c_open || is_live(c_ref))
      :: else -> skip
      fi;
completed:
      skip;
      d_step { c_unit = 0; c_word = 0; c_old = 0; c_ref = 0; c_open = false };
      if
      :: c_back == AFTER_SETTLE -> c_back = 0; goto go_back
      :: c_back == AFTER_INSTALL -> c_back = 0; goto drive
      :: c_back == AFTER_RELEASE -> c_back = 0; goto release_again
      :: c_back == AFTER_RECOVER -> c_back = 0; goto next_call
      fi
    }

    /* -- What a dead predecessor left: decide its operation, release its units, finish its install. */
recover:
    atomic {
      g = status[me]; k = reference(me, g >> 2); back = AT_RECOVER;
      if
      :: (g & 3) == SOLO || (g & 3) == HELP -> skip
      :: else -> goto recover_release
      fi
    }
    atomic {
      if
      :: status[me] == g -> status[me] = status_of(k, FAILED)
      :: else -> skip
      fi;
recover_release:
      g = 0;
      if
      :: BUG == 9 -> k = 0; back = OWN; goto recover_install
      :: else -> goto help
      fi
    }
recover_install:
    atomic {
      w = unit[install_unit[me]];
      if
      :: w == claimed(w, reference(me, install_sequence[me])) && BUG != 13 ->
        finish(install_unit[me], w, AFTER_RECOVER)
      :: else -> w = 0; goto next_call
      fi
    }
  }
#ifdef VICTIM /* the search is faster where nobody can die */
  unless { atomic { (killed & 1 << me) != 0 && !heir -> gone = gone | 1 << me } };
#endif
end:
  ended++
}
