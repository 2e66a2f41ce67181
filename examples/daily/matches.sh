#!/bin/sh
# The matches that become known in one day, as one file. A scheduler calls it once for each day, and again
# as often as it likes: it writes the same file with the same rows.
#
#     matches.sh 2026-07-02 2026-07-03 events/ matches/
#
# The first two arguments: after this time, and until that one, as the scheduler gives the ends of its
# interval. celc reads the events before it that these rows need, writes the file under another name and
# moves it in the end, and ends with another code than 0 if anything is wrong.
set -eu
after=$1 until=$2 events=$3 matches=$4
mkdir -p "$matches"
celc run "$(dirname "$0")/fire.cel" "$events" --after "$after" --until "$until" --match-id \
    -o "$matches/known-after-$(printf %s "$after" | tr ' :+' '---').parquet" --force
