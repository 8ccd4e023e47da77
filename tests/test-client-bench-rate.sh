#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir bench and fio measure the same on the same export: within 10%, on
# a store whose speed is set.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq fio
fio --enghelp 2>/dev/null | grep -qw nbd || bail "fio has no nbd engine"

start_weir store='sim:bandwidth=20M,[mem:64M]' cache=none

of_fio() { # RW BS DEPTH
	timeout_run 30 fio --name=x --ioengine=nbd --uri="$uri" --rw="$1" \
		--bs="$2" --iodepth="$3" --runtime=2 --time_based \
		--size=64M --end_fsync=1 \
		--output-format=json | sed -n '/^{/,$p' |
		jq '.jobs[0] | .read.bw_bytes + .write.bw_bytes'
}

of_weir() {
	timeout_run 30 weir bench --rw "$1" --bs "$2" --iodepth "$3" \
		--runtime 2 --json "$uri" |
		jq '.runs[0] | .read.bytes_per_s + .write.bytes_per_s'
}

# Rounded down to bytes a second; a difference of 10% at most.
agree() {
	local a=${1%.*} b=${2%.*}
	[ "$a" -gt 1000000 ] && [ $((a * 10)) -le $((b * 11)) ] &&
		[ $((b * 10)) -le $((a * 11)) ]
}

# The best of up to four turns: a busy machine slows one or the other.
best() {
	[ "${2%.*}" -gt "${1%.*}" ] && echo "$2" || echo "$1"
}

for case in "write 1M 4" "randread 64K 8"; do
	fio_rate=0
	weir_rate=0
	for _ in 1 2 3 4; do
		# shellcheck disable=SC2086 # three words
		fio_rate=$(best "$fio_rate" "$(of_fio $case)")
		# shellcheck disable=SC2086
		weir_rate=$(best "$weir_rate" "$(of_weir $case)")
		! agree "$fio_rate" "$weir_rate" || break
	done
	ok "$case: fio $fio_rate, weir $weir_rate bytes per second" \
		agree "$fio_rate" "$weir_rate"
done
stop_weir
done_testing
