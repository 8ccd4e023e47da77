#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir set and weir drop: limits of a running server are changed, all that
# were asked for or none; the cache is emptied of what is clean.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq

start_weir store=mem:64M cache-size=32M dirty-expire=1h
is "$(stat_of settings.dirty_limit_bytes)" 16777216 "what holds at first"

ok "a limit is changed" weir set "$ctl" dirty-limit=4M
is "$out" "" "without a word"
is "$(stat_of dirty_limit_bytes)" 4194304 "the limit in force is another"
is "$(stat_of settings.dirty_limit_bytes)" 4194304 "and the setting"
ok "several at once, one store named" weir set "$ctl" \
	mem:64M:dirty-limit=2M dirty-background=512K error-timeout=1m
is "$(stat_of settings.dirty_background_bytes)" 524288 "the second holds"
is "$(stat_of settings.error_timeout_us)" 60000000 "and the third"

before=$(stat_of settings | jq -c .)
refused() { # WORDS KEY=VALUE...
	local words=$1
	shift
	exits 1 "refused: $*" weir set "$ctl" "$@"
	like "$out" "^weir set: control socket [^ ]*: $words" "says why"
}
refused 'page-size: cannot be changed while the store is open' \
	dirty-limit=1M page-size=4K
refused 'dirty-limit=64M: larger than cache-size=32M' \
	dirty-expire=1s dirty-limit=64M
refused 'dirty-limits=1M: unknown key, did you mean dirty-limit=\?' \
	dirty-limits=1M
refused 'disk:dirty-limit=1M: no such store' dirty-expire=1s disk:dirty-limit=1M
exits 1 "no value" weir set "$ctl" dirty-limit
like "$out" "^weir set: dirty-limit: not KEY=VALUE" "is told"
exits 1 "nothing to set" weir set "$ctl"
exits 2 "no server there" weir set "$tmp/none" dirty-limit=1M
is "$(stat_of settings | jq -c .)" "$before" "of those, none was taken"

# What can be changed is documented, and nothing else.
section=$(sed -n '/^\.Ss weir set/,/^\.S[hs] [^w]/p' \
	"$WEIR_SRCDIR/man/weir.1")
documented=
live=
for key in $(weir-server --help | sed -nE 's/^  ([a-z-]+)=.*/\1/p'); do
	error=$(weir set "$ctl" "$key=?" 2>&1)
	[[ $error == *"cannot be changed"* || $error == *"unknown key"* ]] ||
		live+="$key "
	! grep -qxE "\.Cm $key( [,.])?" <<<"$section" || documented+="$key "
done
like "$live" 'dirty-limit ' "some are refused for their value alone"
is "$documented" "$live" "and just those are in weir(1)"

# The limit is held from then on, and a lower one is come down to.
ok "reset" weir reset "$ctl"
ok "16M are written" weir bench --rw write --bs 1M --size 16M --end-fsync=0 \
	--force "$uri"
peak=$(stat_of dirty_peak_bytes)
ok "the limit held ($peak)" test "$peak" -gt 524288 -a "$peak" -le 2097152
ok "lower, with data dirty" weir set "$ctl" dirty-limit=64K \
	dirty-background=16K
ok "it comes down to that" wait_until 10 \
	sh -c "weir stats --json '$ctl' | jq -e '.stores[0].dirty_bytes <= 65536'"
ok "reset again" weir reset "$ctl"
ok "requests of 1M are larger than the limit" weir bench --rw write --bs 1M \
	--size 4M --force "$uri"
peak=$(stat_of dirty_peak_bytes)
ok "the lower limit held ($peak)" test "$peak" -gt 0 -a "$peak" -le 65536

# Dropping what is clean.
cached=$(stat_of cached_bytes)
ok "there is something cached ($cached)" test "$cached" -gt 4000000
ok "drop" weir drop "$ctl"
is "$out" "$(sed -E 's/^([^ ]+) .*/\1/' <<<"$out") ($cached bytes) freed" \
	"says what it freed"
is "$(stat_of cached_bytes)" 0 "nothing is left"
misses=$(stat_of misses)
ok "1M is read" weir bench --rw read --bs 64K --size 1M "$uri"
ok "from the store" test "$(stat_of misses)" -gt "$misses"
ok "a smaller cache" weir set "$ctl" cache-size=512K
ok "is reclaimed to" test "$(stat_of cached_bytes)" -le 524288

stop_weir
is "$status" 0 "it ends well"
done_testing
