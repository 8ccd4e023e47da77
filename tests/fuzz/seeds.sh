#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# seeds.sh: write what the fuzzers begin with: tests/fuzz/seeds.sh FOLDER
# makes FOLDER/handshake and so on. What is in tests/fuzz/corpus besides came
# from fuzzing.

set -eu
cd "${1:?a folder}"

# n BITS NUMBER...: big-endian. s TEXT, z COUNT: bytes.
n() {
	local bits=$1 number shift text
	shift
	for number; do
		for ((shift = bits - 8; shift >= 0; shift -= 8)); do
			printf -v text '\\x%02x' $((number >> shift & 255))
			printf '%b' "$text"
		done
	done
}
s() { printf '%s' "$1"; }
z() { head -c "$1" /dev/zero; }

# --- options ------------------------------------------------------------------

greet() { n 32 "${1:-3}"; }
option() { # option NUMBER [LENGTH]: its data follows
	s IHAVEOPT
	n 32 "$1" "${2:-0}"
}
export_name() { # export_name NAME: by the old option
	option 1 "${#1}"
	s "$1"
}
info() { # info NUMBER NAME [INFO...]: INFO is 6, GO is 7
	local number=$1 name=$2
	shift 2
	option "$number" $((6 + ${#name} + 2 * $#))
	n 32 ${#name}
	s "$name"
	n 16 $# "$@"
}
meta() { # meta NUMBER NAME QUERY...: LIST is 9, SET is 10
	local number=$1 name=$2 q length
	shift 2
	length=$((8 + ${#name}))
	for q; do
		length=$((length + 4 + ${#q}))
	done
	option "$number" "$length"
	n 32 ${#name}
	s "$name"
	n 32 $#
	for q; do
		n 32 ${#q}
		s "$q"
	done
}

# --- requests -----------------------------------------------------------------

request() { # request TYPE FLAGS COOKIE OFFSET LENGTH
	n 32 0x25609513
	n 16 "$2" "$1"
	n 64 "$3" "$4"
	n 32 "$5"
}
extended() { # the same, 64 bits of length
	n 32 0x21e41c71
	n 16 "$2" "$1"
	n 64 "$3" "$4" "$5"
}

# session HOW FLAG: each kind of request, right and wrong; FLAG is what a
# write's payload needs.
session() {
	"$1" 0 0 1 0 512
	"$1" 1 "$2" 2 4096 512
	z 512
	"$1" 1 $(($2 | 1)) 3 100 16
	s 'sixteen bytes ..'
	"$1" 3 0 4 0 0
	"$1" 4 0 5 0 65536
	"$1" 5 0 6 0 131072
	"$1" 6 2 7 8192 4096
	"$1" 6 16 8 8192 4096
	"$1" 7 0 9 0 1048576
	"$1" 7 8 10 0 4096
	"$1" 0 4 11 4096 8192
	"$1" 0 0 12 0xfffffffffffffe00 4096
	"$1" 1 "$2" 13 1048576 32
	z 32
	"$1" 9 0 14 0 0
	"$1" 0 0x8000 15 0 1
	"$1" 2 0 16 0 0
}

mkdir -p handshake tls transmission spec config file

# --- handshake, tls -----------------------------------------------------------

# seed FOLDER NAME FIRST COMMAND...: bytes FIRST (octal escapes), then what the
# command says.
seed() {
	local file=$1/$2 first=$3
	shift 3
	{
		printf '%b' "$first"
		"$@"
	} >"$file"
}

old_style() {
	greet 1
	export_name "$1"
	session request 0
}
list() {
	greet
	option 3
	option 8
	meta 9 disk
	meta 9 disk base: x-weir:
	option 2
}
go() {
	greet
	option 8
	meta 10 "$1" base:allocation x-weir:cache none:of-that-name
	info 6 "$1" 0 1 2 3
	info 7 "$1" 3
	session request 0
}
go_extended() {
	greet
	option 11
	option 8
	meta 10 disk base:allocation
	info 7 disk
	session extended 32
}
lies() { # lengths that do not fit
	greet
	option 7 4
	n 32 0xffffffff
	option 7 6
	n 32 4097
	n 16 1
	option 10 12
	n 32 0 2 0xffffffff
	option 9 8
	n 32 0xffffffff 0xffffffff
	option 3 4
	n 32 0
	option 77 20000
	z 20000
	option 1 0xffffffff
}
for folder in handshake tls; do
	seed "$folder" export-name '\0' old_style disk
	seed "$folder" export-name-slow '\0201' old_style disk
	seed "$folder" export-name-wrong '\0' old_style other
	seed "$folder" list '\0' list
	seed "$folder" go '\0' go disk
	seed "$folder" go-default '\0205' go ''
	seed "$folder" go-extended '\0' go_extended
	seed "$folder" lies '\0' lies
	seed "$folder" flags '\0' greet 0x80000003
done

# What begins as a ClientHello of TLS 1.3 does, and the plain text of who
# speaks on in the clear.
starttls() {
	greet
	option 8
	option 5
}
hello() {
	starttls
	n 8 0x16 3 1 0 0x2f 1 0 0 0x2b 3 3
	z 32
	n 8 0 0 2 0x13 1 1 0 0 0
}
seed handshake starttls '\0200' starttls
seed handshake starttls-hello '\0' hello

# --- transmission -------------------------------------------------------------

seed transmission simple '\0\0' session request 0
seed transmission structured '\0001\0' session request 0
seed transmission structured-slow '\0001\0202' session request 0
seed transmission extended '\0002\0' session extended 32
seed transmission extended-slow '\0002\0210' session extended 32
big() { # a write in place, and a read behind it
	"$1" 1 "$2" 1 0 65536
	z 65536
	"$1" 0 0 2 0 32768
}
seed transmission big '\0\0' big request 0
seed transmission big-slow '\0002\0337' big extended 32
zero_length() {
	local type
	for type in 0 1 4 5 6 7; do
		request $type 0 $type 0 0
	done
}
seed transmission zero-length '\0001\0' zero_length

# --- spec, config -------------------------------------------------------------

number=0
while read -r spec; do
	number=$((number + 1))
	printf '%s' "$spec" >"spec/$number"
done <<'END'
mem:1M
null:1P
sim:hdd,mem:1M
sim:usb,cache=off,bandwidth=9M,[null:1G]
sim:latency=1ms,depth=2,seek=2ms,mem:3K
fault:delay=1s,[sim:latency=1ms,depth=2,mem:3K]
fault:[sim:depth=2,[fault:seed=1,[mem:512]]]
fault:error=EIO,op=write,after=3,[mem:1M]
stripe:64K,mem:1M,[sim:depth=2,mem:1M]
sim:depth=2,[mem:1M
sim:[mem:1M]x
END
cat >config/keys <<'END'
store=mem:1M
cache=writeback
cache-size=64M
page-size=64K
block-size=4K
dirty-limit=50%
dirty-background=16M
dirty-time=2s
dirty-expire=30s
error-timeout=10m
readahead=2M
inflight-bytes=32M
throttle=legacy
placement=immediate
append=serial
subpage=off
multipage=on
detect-zeroes=unmap
readonly=yes
END
cat >config/wrong <<'END'
cache-size=0
cache-size=99999999999999999999E
page-size=5K
block-size=1G
dirty-limit=101%
dirty-time=-1s
throttle=
nothing=1
dirty-limit=1.5G
END

# --- file ---------------------------------------------------------------------

cat >file/two-exports <<'END'
# a comment
[server]
port = 10809
max-connections = 16
tls = require
tls-certificates = /etc/pki
tls-allow = a
tls-allow = b

[store disk]
store = raw:/srv/disk.img   ; another
cache-size = 64M

[export]
store = disk
[export second]
store = disk
description = the second
readonly = on
END
cat >file/wrong <<'END'
key = before
[sever]
[server name]
[server]
prot = 1
port = 99999999
[store]
[store a]
[store a]
cache-size = many
 continued
[export x
store = nothing
[export y]
store =
no equals sign
END
