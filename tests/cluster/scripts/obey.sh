#!/bin/sh
# A rank that does what it is told: prints "rank R ready", then runs each line written to /tmp/tell-R in its own shell.
trap - TERM INT
mkfifo "/tmp/tell-$RANK"
# Opened for both ways once: opened anew for each line, it could meet a writer that is just closing and read an end of file.
exec 3<> "/tmp/tell-$RANK"
echo "rank $RANK ready"
while read -r line <&3; do
  eval "$line"
done
