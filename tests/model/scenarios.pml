/*
 * The scripts: what is in the page at first, and what each participant calls, one call after the other. They are small
 * on purpose: each is there for one kind of meeting, and many small searches see more than a huge one that never ends.
 *
 * -DSCENARIO=NAME picks one. -DFIRST_TRY=2 begins operations in help mode, where they come after two aborted tries;
 * -DVICTIM=p (and -DSECOND_VICTIM=p) lets p die at any step, after which its heir recovers and makes the heir's calls
 * (-DSILENT: none).
 */
#ifndef FIRST_TRY
#define FIRST_TRY 0
#endif
#define LIMIT 3

#define one(k, c) key[0] = k; cost[0] = c
#define two(k, c, l, d) key[0] = k; cost[0] = c; key[1] = l; cost[1] = d
#define by(p, c) me == p && call == c
#define HEIR_CALL 8
#ifdef SILENT
#define by_heir(p, c) false
#else
#define by_heir(p, c) me == p && call == HEIR_CALL + c
#endif
#define slot(u, k, s) unit[u] = word(PLAIN, k, s); admitted[k] = s

#define CHARGES 1
#define VERDICTS 2
#define LOOKS 3
#define PAIR 4
#define TWO_NEW 5
#define INSERT 6
#define REUSE 7
#define REMOVAL 8
#define DEATH 9
#define DEATH_NEW 10
#define THERE_AND_BACK 11
#define CROWD 12

#if SCENARIO == CHARGES /* a verdict on two keys among charges: plain CAS against marks, entries that move on */
#define UNITS 3
#define PARTS 2
inline setup() { slot(1, A, 0); slot(2, B, 1) }
inline plan() {
  if
  :: by(0, 0) -> two(A, 1, B, 1)
  :: by(1, 0) -> one(B, 1)
  :: by(1, 1) -> one(A, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == VERDICTS /* two verdicts on the same keys, with room for one of them: aborts, then help */
#define UNITS 3
#define PARTS 2
inline setup() { slot(1, A, 0); slot(2, B, 2) }
inline plan() {
  if
  :: by(0, 0) -> two(A, 1, B, 1)
  :: by(1, 0) -> two(B, 1, A, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == LOOKS /* a unit that an operation leaves as it was may be taken for one that it has not reached */
#define UNITS 3
#define PARTS 2
inline setup() { slot(1, A, 0); slot(2, B, 2) }
inline plan() {
  if
  :: by(0, 0) -> two(A, 1, B, LOOK)
  :: by(0, 1) -> two(A, 1, B, LOOK)
  :: by(1, 0) -> one(A, 1)
  :: by(1, 1) -> one(B, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == PAIR /* a verdict on an absent and a lapsed key: the one must not take the slot of the other */
#define UNITS 3
#define PARTS 2
inline setup() { slot(1, A, 0) }
inline plan() {
  if
  :: by(0, 0) -> two(C, 1, A, 1)
  :: by(1, 0) -> one(A, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == TWO_NEW /* a verdict inserts two keys under one version while another inserts one of them */
#define UNITS 3
#define PARTS 2
inline setup() { skip }
inline plan() {
  if
  :: by(0, 0) -> two(C, 1, A, 1)
  :: by(1, 0) -> one(C, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == INSERT /* two insert one key, and a slot before the free one lapses: each may choose another slot */
#define UNITS 3
#define PARTS 3
inline setup() { slot(1, A, 1) }
inline plan() {
  if
  :: by(0, 0) -> one(C, 1)
  :: by(1, 0) -> one(C, 1)
  :: by(2, 0) -> one(A, GIVE_BACK)
  :: else -> skip
  fi
}

#elif SCENARIO == REUSE /* a slot lapses and is taken by another key while its old key is charged */
#define UNITS 3
#define PARTS 3
inline setup() { slot(1, A, 1); slot(2, B, 1) }
inline plan() {
  if
  :: by(0, 0) -> one(A, 1)
  :: by(1, 0) -> one(C, 1)
  :: by(2, 0) -> one(A, GIVE_BACK)
  :: else -> skip
  fi
}

#elif SCENARIO == REMOVAL /* a lapsed slot is removed, taken and revived at once */
#define UNITS 3
#define PARTS 3
inline setup() { slot(1, A, 0) }
inline plan() {
  if
  :: by(0, 0) -> one(A, REMOVE)
  :: by(1, 0) -> one(C, 1)
  :: by(2, 0) -> one(A, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == DEATH /* an owner or its helper dies; the heir goes on with other keys and heals nothing by chance */
#define UNITS 4
#define PARTS 2
inline setup() { slot(1, A, 0); slot(2, B, 0); slot(3, C, 0) }
inline plan() {
  if
  :: by(0, 0) -> two(A, 1, B, 1)
  :: by_heir(0, 0) -> two(A, 1, C, 1)
  :: by(1, 0) -> one(A, 1)
  :: by_heir(1, 0) -> one(B, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == DEATH_NEW /* an inserter dies */
#define UNITS 3
#define PARTS 2
inline setup() { slot(1, A, 0) }
inline plan() {
  if
  :: by(0, 0) -> one(C, 1)
  :: by_heir(0, 0) -> one(C, 1)
  :: by(1, 0) -> one(C, 1)
  :: by_heir(1, 0) -> one(A, 1)
  :: else -> skip
  fi
}

#elif SCENARIO == THERE_AND_BACK /* while an operation is helped, one of its keys goes to another value and back */
#define UNITS 3
#define PARTS 3
inline setup() { slot(1, A, 0); slot(2, B, 0) }
inline plan() {
  if
  :: by(0, 0) -> two(A, 1, B, 1)
  :: by(1, 0) -> one(A, 1)
  :: by(2, 0) -> one(B, 1)
  :: by(2, 1) -> one(B, GIVE_BACK)
  :: else -> skip
  fi
}

#elif SCENARIO == CROWD /* two operations and a charge that meets both: help for one who helps */
#define UNITS 4
#define PARTS 3
inline setup() { slot(1, A, 0); slot(2, B, 0); slot(3, C, 0) }
inline plan() {
  if
  :: by(0, 0) -> two(A, 1, B, 1)
  :: by(1, 0) -> two(B, 1, C, 1)
  :: by(2, 0) -> one(C, 1)
  :: else -> skip
  fi
}

#else
#error "no such scenario"
#endif
