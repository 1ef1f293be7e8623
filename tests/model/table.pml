/*
 * The table's protocol as a Promela model: every interleaving of a few participants, at sequential consistency.
 *
 * Each `atomic` block is one access to shared memory (a 16-byte read, a 16-byte CAS, a status CAS, or writes that no
 * one acts on before a later access) and ends where the next one begins; between two blocks anybody may run. Nothing in
 * `participant` ever waits: a block that cannot be executed is an invalid end state, and a loop that only another could
 * end is a cycle, which the search for cycles reports. A participant may die at any step (`killed`); its heir gets its
 * record, recovers and goes on. So whoever stands still for ever, the others come to their end.
 *
 * A unit is one number: mark, tag, state. Unit 0 is the page's version (its tag is the version), the others are slots
 * (their tag is the key). A slot whose state is 0 is lapsed: another key may take it.
 *
 * -DSCENARIO=NAME picks a script of scenarios.pml, -DBUG=n seeds a mistake that the search must find (search.bash lists
 * them), -DFINE splits the longer reads into single words. Left out: the lines and overflow bits of a page (the scan is
 * the whole page), blocks, and the nesting of helping: whoever meets a third operation while he helps a second turns to
 * the third, then starts over at his own. Run by tests/model.sh and tests/model_long.sh.
 */
#ifndef BUG
#define BUG 0
#endif

/* Words. A held or claimed unit keeps its tag; its state is a reference, which no plain state can look like. */
#define PLAIN 0
#define HELD 1
#define CLAIMED 2
#define word(mark, tag, state) ((mark) << 12 | (tag) << 8 | (state))
#define mark_of(w) ((w) >> 12)
#define tag_of(w) (((w) >> 8) & 15)
#define state_of(w) ((w) & 255)
#define reference(who, sequence) (64 | (who) << 4 | (sequence))
#define who_of(r) (((r) >> 4) & 3)
#define sequence_of(r) ((r) & 15)
#define held(w, r) word(HELD, tag_of(w), r)
#define claimed(w, r) word(CLAIMED, tag_of(w), r)
#define plain(w, state) word(PLAIN, tag_of(w), state)

/* Status of an operation: sequence << 2 | one of these. */
#define SOLO 0
#define HELP 1
#define DONE 2
#define FAILED 3
#define status_of(r, s) (sequence_of(r) << 2 | (s))

/* Keys, and what a call does to one: charge a cost, give back, look for room for 1, or remove a lapsed slot. */
#define A 1
#define B 2
#define C 3
#define KEYS 4
#define LOOK 0
#define GIVE_BACK (-1)
#define REMOVE (-9)
#define need(cost) (cost == LOOK -> 1 : cost)

#include "scenarios.pml"

#define ENTRIES 3
#define SOLO_TRIES 2
#define SEQUENCES 16
#define at(who, i) ((who) * ENTRIES + (i))
#define ghost(who, key) ((who) * KEYS + (key))

/* Shared memory: the page, and a record for each participant. */
short unit[UNITS];
byte status[PARTS];
byte count[PARTS];
byte entry_unit[PARTS * ENTRIES];
short entry_old[PARTS * ENTRIES];
short entry_next[PARTS * ENTRIES];
byte install_sequence[PARTS];
byte install_unit[PARTS];
byte install_old[PARTS];
byte install_ref[PARTS];

/* Ghosts: what callers were promised. No participant looks at them. */
short admitted[KEYS];
short want[PARTS * KEYS];
bool looks[PARTS * KEYS];
byte committed[PARTS];
byte released; /* a bit for each participant: its owner, or the heir, has released its last operation */
#define is_live(r) ((status[who_of(r)] >> 2) == sequence_of(r) && (released & 1 << who_of(r)) == 0)

/* A bit for each participant: who was killed, whose lock is free, who is at an end; and how many are. */
byte killed, gone, over, ended;

/* The properties. Each is named, so that a search says which one fell. */
bool nothing_marked = true; /* at the end no unit is held or claimed */
bool marks_live = true;     /* a mark names an operation or an install that is not over */
bool totals_exact = true;   /* each slot holds what was admitted to its key: all or nothing of a verdict */
bool within_limit = true;   /* never more than the limit */
bool no_key_twice = true;   /* a page has a key in one slot at most */
bool denial_true = true;    /* a denial is true at the read that gave it */
bool one_event = true;      /* at its commit a verdict still has room at each key it read */
bool counted_once = true;   /* allowed: counted exactly once; denied: not at all */
bool few_tries = true;      /* sequence numbers stay small: nobody is aborted more than twice */
inline require(property, condition) {
  property = (condition);
  assert(property)
}

/* The moment at which a verdict counts. */
inline commit(who) {
  d_step {
    committed[who]++;
    require(counted_once, committed[who] == 1);
    g = 1;
    do
    :: g < KEYS ->
      require(one_event, !looks[ghost(who, g)] || admitted[g] < LIMIT);
      admitted[g] = admitted[g] + want[ghost(who, g)];
      require(within_limit, admitted[g] <= LIMIT);
      g++
    :: else -> break
    od;
    g = 0
  }
}

#include "participant.pml"

/* What must be true when all are at an end. */
inline judge() {
  u = 0;
  do
  :: u < UNITS -> require(nothing_marked, mark_of(unit[u]) == PLAIN); u++
  :: else -> break
  od;
  g = 1;
  do
  :: g < KEYS ->
    u = 1; times = 0; total = 0;
    do
    :: u < UNITS ->
      if
      :: tag_of(unit[u]) == g -> times++; total = total + state_of(unit[u])
      :: else -> skip
      fi;
      u++
    :: else -> break
    od;
    require(no_key_twice, times <= 1);
    require(totals_exact, total == admitted[g]);
    g++
  :: else -> break
  od
}

/* Kills p at any step before its end; then its lock is free, and an heir takes it over. */
inline may_kill(p) {
  if
  :: atomic { (over & 1 << p) == 0 -> killed = killed | 1 << p };
    (gone & 1 << p) != 0;
    atomic { run participant(p, true); expected++ }
  :: (over & 1 << p) != 0
  fi
}

init {
  byte u, g, times;
  byte expected = PARTS;
  short total;
  atomic {
    setup();
    g = 0;
    do
    :: g < PARTS -> run participant(g, false); g++
    :: else -> break
    od;
    g = 0
  }
#ifdef VICTIM
  may_kill(VICTIM);
#endif
#ifdef SECOND_VICTIM
  may_kill(SECOND_VICTIM);
#endif
  ended == expected;
  d_step { judge() }
}
