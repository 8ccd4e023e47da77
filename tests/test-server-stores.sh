#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The table of weir-stores(7) says what nbdinfo says of an export on each store,
# and what weir info --store says of the store itself.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq nbdinfo qemu-io

page=$WEIR_SRCDIR/man/weir-stores.7
row() { # KIND: its cells, one a line
	sed -nE "s/^\\.It $1 Ta //p" "$page" | sed 's/ Ta /\n/g'
}
truncate -s 8M "$tmp/raw" "$tmp/inner" "$tmp/volatile"
weir pool create "$tmp/pool" --size 8M >/dev/null || bail "no pool"

align_of() { # SPEC
	weir info --store --json "$1" 2>/dev/null | jq .align_bytes
}
raw_align=$(align_of "$tmp/raw")
align() { # WORD of the page: the number it stands for here
	case $1 in
	direct | members) echo "$raw_align" ;;
	inner) echo 1 ;;
	server) echo 512 ;; # nbdkit says nothing
	*) echo "$1" ;;
	esac
}

holes() { # after a trim of what was written
	qemu-io -f raw -c 'write -P 7 0 1M' -c flush -c 'discard 0 1M' \
		-c flush "$uri" >/dev/null
	nbdinfo --map "$uri" | grep -q hole
}

kinds=$(sed -nE 's/^\.It ([a-z]+) Ta (yes|no) .*/\1/p' "$page")
is "$(wc -w <<<"$kinds")" "$(grep -cE '^\.It Cm [a-z]+ : Ns' "$page")" \
	"each kind has a row"
for kind in $kinds; do
	case $kind in
	raw) spec=raw:$tmp/raw ;;
	pool) spec=pool:$tmp/pool ;;
	stripe) spec="stripe:64K,[mem:4M],[raw:$tmp/inner]" ;;
	sim) spec=sim:ssd,mem:8M ;;
	fault) spec=fault:mem:8M ;;
	volatile) spec=volatile:$tmp/volatile ;;
	exec) spec="exec:nbdkit memory 8M" ;;
	nbd)
		background nbdkit -f -U "$tmp/far.sock" memory 8M
		wait_for "$tmp/far.sock"
		spec="nbd+unix:///?socket=$tmp/far.sock"
		;;
	*) spec=$kind:8M ;;
	esac
	mapfile -t said < <(row "$kind")
	is "${#said[@]}" 7 "$kind: the row is complete"
	is "$(align_of "$spec")" "$(align "${said[6]}")" "$kind: align"
	start_weir store="$spec"
	is "$(nbdinfo --size "$uri")" 8388608 "$kind: the size"
	n=0
	for what in trim zero fast-zero fua multi-conn; do
		can=no
		! nbdinfo --can "$what" "$uri" || can=yes
		is "$can" "${said[n]}" "$kind: $what"
		n=$((n + 1))
	done
	can=no
	! holes || can=yes
	is "$can" "${said[5]}" "$kind: holes"
	stop_weir
done

ok "a store is described" weir info --store "stripe:4K,[mem:1M],[sim:hdd,mem:1M]"
like "$out" '^stripe.*: 2M \(2097152 bytes\), align 1, can .*trim' "with its size"
like "$out" $'\n    mem:1M: 1M' "and what is inside"
exits 1 "a bad member" weir info --store 'stripe:4K,[mem:1M],[mem:x]'
like "$out" '^weir info: member 2: store mem:x: bad size' "is named"

# Faults of a server that runs.
start_weir store="stripe:64K,[fault:name=a,mem:4M],[fault:name=b,mem:4M]" \
	cache=none
io() {
	qemu-io -f raw -t none -c "$1" "$uri"
}
ok "all is well" io 'write -P 1 0 256K'
ok "one member fails" weir set "$ctl" fault=name=b,error=always,op=read+write
ok "the other one does not" io 'read -P 1 0 64K'
io 'read 64K 4K' | grep -q 'Input/output error'
is "${PIPESTATUS[1]}" 0 "what is on it cannot be read"
ok "off" weir set "$ctl" fault=off
ok "it can again" io 'read -P 1 0 256K'
exits 1 "no such name" weir set "$ctl" fault=name=c,off
like "$out" 'fault: .* has no fault: inside called c' "is told"
exits 1 "bad rules" weir set "$ctl" dirty-limit=1M fault=error=some
like "$out" 'fault: bad error "some"' "are told"
ok "the power is cut" weir set "$ctl" fault=power-cut=1
io 'read 0 4K' | grep -q 'Input/output error'
is "${PIPESTATUS[1]}" 0 "nothing can be read any more"
stop_weir
done_testing
