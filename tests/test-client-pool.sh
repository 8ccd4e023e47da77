#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir pool: making, enlarging and looking at pools, and what it refuses.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq qemu-io mkfs.ext4

pool=$tmp/pool.img

# of FIELD: of weir pool info --json.
of() {
	weir pool info --json "$pool" | jq -r ".$1"
}

# --- create ---------------------------------------------------------------------

ok "a pool is made, and its file" weir pool create "$pool" --size 64M
is "$(stat -c %a "$pool")" 600 "which is for its owner alone"
is "$(of size_bytes)" $((64 << 20)) "the device has the size asked for"
ok "the space holds all of it" test "$(of space_bytes)" -gt $((64 << 20))
is "$(of space_bytes)" "$(stat -c %s "$pool")" "and is the file's size"
ok "the file is sparse" test "$(stat -c %b "$pool")" -lt 2048
is "$(of extents)" 0 "nothing is mapped"
ok "it is clean" weir pool check "$pool"
like "$out" 'clean, 0 extents' "and check says so"

exits 1 "a pool is not overwritten" weir pool create "$pool" --size 32M
like "$out" 'there is a pool on it; --force' "and why is said"
is "$(of size_bytes)" $((64 << 20)) "it is as it was"
ok "but with --force" weir pool create "$pool" --size 32M --force
is "$(of size_bytes)" $((32 << 20)) "it is another"

truncate -s 16M "$tmp/fs.img"
mkfs.ext4 -q "$tmp/fs.img"
exits 1 "nor is a filesystem" weir pool create "$tmp/fs.img" --size 32M
like "$out" 'ext4' "which is named"
head -c 2M /dev/urandom >"$tmp/data"
exits 1 "nor anything else" weir pool create "$tmp/data" --size 32M
truncate -s 16M "$tmp/blank"
ok "a blank file is used as it is" weir pool create "$tmp/blank" --size 64M
is "$(stat -c %s "$tmp/blank")" $((16 << 20)) "its size is the space"
ok "space can be less than the device" \
	weir pool create "$tmp/thin" --size 1T --space 16M
is "$(stat -c %s "$tmp/thin")" $((16 << 20)) "a thin pool"
ok "space can be allocated" \
	weir pool create "$tmp/full" --size 16M --preallocate
ok "all of it is" test "$(stat -c '%b' "$tmp/full")" -ge $((16 << 11))
is "$(weir pool info --json "$tmp/full" | jq .preallocated)" true \
	"and the pool knows"

exits 1 "no size" weir pool create "$tmp/none"
exits 1 "a bad size" weir pool create "$tmp/none" --size 1000
like "$out" '4K' "says what is wrong with it"
exits 1 "too little space" weir pool create "$tmp/none" --size 1M --space 64K
nok "leaves no file behind" test -e "$tmp/none"
exits 1 "no such directory" weir pool create "$tmp/none/pool" --size 1M
exits 1 "not a file" weir pool create "$tmp" --size 1M
exits 1 "an unknown verb" weir pool mend "$pool"

# --- in use ---------------------------------------------------------------------

ok "a pool to serve" weir pool create "$pool" --size 64M --force
start_weir store="pool:$pool"
ok "is written to" qemu-io -f raw -c 'write -P 1 1M 2M' \
	-c 'write -P 2 32M 64K' -c flush "$uri"
for verb in info map check 'grow --size 1G' 'create --size 1G --force'; do
	# shellcheck disable=SC2086 # words
	nok "$verb while it is served" weir pool $verb "$pool"
	like "$out" '^weir pool [a-z]+: .*in use' "is told so, and nothing else"
done
exits 8 "check cannot tell" weir pool check "$pool"
stop_weir
is "$status" 0 "the server ends well"

# --- looking ----------------------------------------------------------------------

is "$(of mapped_bytes)" $(((2 << 20) + (64 << 10))) "info counts what is mapped"
ok "map" weir pool map "$pool"
like "$out" '1048576 +[0-9]+ +2097152' "shows where the first piece lies"
is "$(weir pool map --json "$pool" | jq -c '[.[] | [.logical, .length]]')" \
	'[[1048576,2097152],[33554432,65536]]' "and in JSON both"
is "$(weir pool map --json "$pool" | jq 'map(.length) | add')" \
	"$(of mapped_bytes)" "which is all that is mapped"
ok "info for people" weir pool info "$pool"
like "$out" 'mapped +2.06M in 2 extents of 1.03M on average' "sums it up"

# --- grow -------------------------------------------------------------------------

before=$(of space_bytes)
ok "grow" weir pool grow "$pool" --size 256M
is "$(of size_bytes)" $((256 << 20)) "makes the device larger"
ok "and the space with it" test "$(of space_bytes)" -gt $((before + (190 << 20)))
exits 1 "but not smaller" weir pool grow "$pool" --size 128M
like "$out" 'cannot shrink' "which is said"
ok "of a thin pool" weir pool grow "$tmp/thin" --size 2T
is "$(stat -c %s "$tmp/thin")" $((16 << 20)) "the space stays"
ok "until it is given more" weir pool grow "$tmp/thin" --space 32M
is "$(stat -c %s "$tmp/thin")" $((32 << 20)) "which it then has"
start_weir store="pool:$pool"
ok "a grown pool has its data, and room" qemu-io -f raw \
	-c 'read -P 1 1M 2M' -c 'read -P 2 32M 64K' -c 'read -P 0 3M 1M' \
	-c 'write -P 3 255M 1M' -c 'read -P 3 255M 1M' "$uri"
stop_weir

# --- check ------------------------------------------------------------------------

ok "it is clean after all that" weir pool check --json "$pool"
is "$(jq .clean <<<"$out")" true "in JSON too"
# Where the superblock says, as in weir-pool(5).
checkpoint=$(od -An -tu8 -N8 -j $((65536 * ($(of generation) % 2) + 120)) \
	"$pool" | tr -d ' ')
ok "there is a checkpoint" test "$checkpoint" -gt 0
printf x | dd of="$pool" bs=1 seek=$((checkpoint + 100)) conv=notrunc \
	status=none
exits 4 "a broken checkpoint is found" weir pool check "$pool"
like "$out" "at $checkpoint: .*checksum" "and where"
exits 4 "in JSON" weir pool check --json "$pool"
is "$(jq '.findings[0].offset' <<<"$out")" "$checkpoint" "the same place"
exits 2 "info of a damaged pool" weir pool info "$pool"
like "$out" 'weir pool check' "says where to look"
exits 2 "and it does not grow" weir pool grow "$pool" --size 1G
exits 8 "what is no pool" weir pool check "$tmp/fs.img"
exits 8 "what is not there" weir pool check "$tmp/none"
exits 16 "a wrong command line" weir pool check
exits 16 "an unknown option" weir pool check --mend "$pool"
done_testing
