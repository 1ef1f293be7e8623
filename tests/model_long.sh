#!/usr/bin/env bash
# The larger searches of the table's protocol (tests/model/): three participants from solo to help, two deaths, and the
# longer reads word by word. Called as `model_long.sh PROGRAM SOURCE_DIR`. Takes some minutes, and up to 3 GB for each
# of two searches.
. "$(dirname "${BASH_SOURCE[0]}")/model/search.bash"
help=-DFIRST_TRY=2

right large "a key there and back, help" -DSCENARIO=THERE_AND_BACK $help
right large "a key there and back" -DSCENARIO=THERE_AND_BACK
right large "help for one who helps" -DSCENARIO=CROWD $help
right large "two insert one key" -DSCENARIO=INSERT
right large "two new keys" -DSCENARIO=TWO_NEW
right large "a lapsed slot removed, taken, revived" -DSCENARIO=REMOVAL
right large "a lapsed slot removed, taken, revived, help" -DSCENARIO=REMOVAL $help
right large "an owner dies" -DSCENARIO=DEATH -DVICTIM=0
right large "a helper dies" -DSCENARIO=DEATH -DVICTIM=1
right large "an owner and its helper die, help" -DSCENARIO=DEATH $help -DVICTIM=0 -DSECOND_VICTIM=1 -DSILENT
right large "a helper and its owner die, help" -DSCENARIO=DEATH $help -DVICTIM=1 -DSECOND_VICTIM=0
right large "an inserter dies, help" -DSCENARIO=DEATH_NEW $help -DVICTIM=0
right large "units left as they were, an owner dies, help" -DSCENARIO=LOOKS $help -DVICTIM=0
right large "units left as they were, a helper dies, help" -DSCENARIO=LOOKS $help -DVICTIM=1

right large "a verdict among charges, word by word" -DSCENARIO=CHARGES -DFINE
right large "two verdicts, word by word" -DSCENARIO=VERDICTS -DFINE
right large "units left as they were, word by word" -DSCENARIO=LOOKS -DFINE
right large "units left as they were, help, word by word" -DSCENARIO=LOOKS $help -DFINE
right large "an owner dies, help, word by word" -DSCENARIO=DEATH $help -DVICTIM=0 -DFINE

right large "two verdicts: no cycle" -DSCENARIO=VERDICTS
right large "two insert one key, help: no cycle" -DSCENARIO=INSERT $help
right large "an owner dies: no cycle" -DSCENARIO=DEATH -DVICTIM=0
right large "an owner dies, help: no cycle" -DSCENARIO=DEATH $help -DVICTIM=0

bug 1 marks_live small -DSCENARIO=DEATH $help -DVICTIM=0
bug 4 nothing large -DSCENARIO=THERE_AND_BACK $help
bug 4 nothing large -DSCENARIO=DEATH $help -DVICTIM=0 -DFINE
bug 21 nothing large -DSCENARIO=THERE_AND_BACK $help
bug 21 nothing large -DSCENARIO=DEATH $help -DVICTIM=0 -DFINE
finish
