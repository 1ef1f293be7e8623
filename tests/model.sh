#!/usr/bin/env bash
# The protocol of the table holds in every interleaving of some small scenarios, and the search finds each seeded bug
# (tests/model/). Called as `model.sh PROGRAM SOURCE_DIR`; the program is not used. model_long.sh has the larger
# scenarios.
. "$(dirname "${BASH_SOURCE[0]}")/model/search.bash"
help=-DFIRST_TRY=2

right medium "an owner dies, help" -DSCENARIO=DEATH $help -DVICTIM=0
right medium "two insert one key, help" -DSCENARIO=INSERT $help
right small "a verdict among charges" -DSCENARIO=CHARGES
right small "a verdict among charges, help" -DSCENARIO=CHARGES $help
right small "two verdicts, room for one" -DSCENARIO=VERDICTS
right small "units left as they were" -DSCENARIO=LOOKS
right small "units left as they were, help" -DSCENARIO=LOOKS $help
right small "an absent and a lapsed key" -DSCENARIO=PAIR
right small "two new keys, help" -DSCENARIO=TWO_NEW $help
right small "a lapsed slot taken by another key" -DSCENARIO=REUSE
right small "a helper dies, help" -DSCENARIO=DEATH $help -DVICTIM=1
right small "a verdict among charges: no cycle" -DSCENARIO=CHARGES
right small "units left as they were, help: no cycle" -DSCENARIO=LOOKS $help
right small "a helper dies, help: no cycle" -DSCENARIO=DEATH $help -DVICTIM=1

bug 1 marks_live medium -DSCENARIO=THERE_AND_BACK $help
bug 2 marks_live small -DSCENARIO=LOOKS $help
bug 3 no_key_twice small -DSCENARIO=INSERT
bug 4 nothing small -DSCENARIO=LOOKS $help
bug 5 denial_true small -DSCENARIO=CHARGES
bug 6 no_key_twice small -DSCENARIO=INSERT
bug 7 marks_live small -DSCENARIO=LOOKS $help
bug 8 totals_exact small -DSCENARIO=PAIR
bug 9 nothing_marked small -DSCENARIO=LOOKS -DVICTIM=0
bug 10 totals_exact small -DSCENARIO=CHARGES
bug 11 totals_exact small -DSCENARIO=REUSE
bug 12 totals_exact small -DSCENARIO=REUSE
bug 13 nothing_marked small -DSCENARIO=LOOKS $help -DVICTIM=1
bug 14 one_event small -DSCENARIO=LOOKS
bug 15 nothing_marked small -DSCENARIO=LOOKS
bug 16 totals_exact small -DSCENARIO=CHARGES
bug 17 nobody_waits small -DSCENARIO=CHARGES
bug 18 few_tries small -DSCENARIO=VERDICTS
bug 19 one_event small -DSCENARIO=LOOKS
bug 20 no_key_twice small -DSCENARIO=INSERT $help
bug 21 nothing small -DSCENARIO=LOOKS $help
finish
