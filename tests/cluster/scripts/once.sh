#!/bin/bash
# A rank that is to run once at any time: it holds a lock in $SHARED, which all hosts see, and says so if another one of its number has it.
# In the first attempt rank 1 fails when it is told to; with STUBBORN rank 0 then goes on until it is killed. Else all wait for the word.
exec 9>>"$SHARED/rank$RANK"
flock -n 9 || echo "rank $RANK runs twice, now on $(hostname)" >>"$SHARED/two"
first=$([ "$TORCHELASTIC_RESTART_COUNT" = 0 ] && echo yes)
[ "$STUBBORN$first$RANK" = 1yes0 ] && trap 'echo stubborn' TERM
echo "rank $RANK of try $TORCHELASTIC_RESTART_COUNT"
while :; do
  [ "$first$RANK" = yes1 ] && [ -e "$SHARED/fail" ] && exit 7
  [ -e "$SHARED/go" ] && exit 0
  sleep 0.1
done
