#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir-server --check-config: all that is wrong in a file, each with its line.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

server_only "nbdkit has no such file"

# says EXPECTED WHAT: of the file on stdin, the errors are those, whole lines.
says() {
	local got
	cat >"$tmp/c"
	got=$(weir-server --check-config --config "$tmp/c" 2>&1)
	status=$?
	is "${got//weir-server: "$tmp/c":/}" "$1" "$2"
	is "$status" 1 "and ends with 1"
}

good='[store a]
store = mem:1M
cache-size = 64K
[export]
store = a'

exits 0 "a file that is right" weir-server --check-config --config /dev/stdin \
	<<<"$good"

says '2: [stor]: unknown section, did you mean [store]?
4: [nothing]: unknown section; there are [server], [store NAME] and [export NAME]
6: [store]: expected [store NAME]
8: [server x]: it has no name
10: [store c: no ] at the end
12: [store d] x: more after the ]' "bad sections" <<END

[stor b]
junk = but not looked at
[nothing]
x = 1
[store]
x = 1
[server x]
x = 1
[store c
x = 1
[store d] x
x = 1
$good
END

says '1: a=1: before any [section]
4: [store a]: given in line 2 already
6: [export]: given in line 5 already
8: [export x y]: given in line 7 already
10: [server]: given in line 9 already' "sections given twice" <<'END'
a = 1
[store a]
store = mem:1M
[store a]
[export]
[export ]
[export x y]
[ export  x y ]
[server]
[server]
END

says '2: threads=0: expected a number from 1 to 256
3: port=70000: expected a number from 0 to 65535
4: poll=soon: expected a time, as 50us, 90s or 5m
5: tls=maybe: expected off, on or require
6: swap=2: must be yes or no
7: thread=1: unknown key, did you mean threads=?
8: config=x: no key of [server]
9: exportname=x: no key of [server]
10: colour=red: no key of [server]
11: threads=2: given in line 2 already
13: pidfile=y: given in line 12 already' "bad options" <<END
[server]
threads = 0
port = 70000
poll = soon
tls = maybe
swap = 2
thread = 1
config = x
exportname = x
colour = red
threads = 2
pid-file = x
pidfile = y
tls-allow = a
tls-allow = b
$good
END

says '2: cache-size=lots: bad size, write it like 4096, 64K, 1.5G or 2T
3: dirty-limt=1: unknown key, did you mean dirty-limit=?
4: cache=no: must be writeback, writethrough or none
5: cache-size=1M: given in line 2 already
8: cache=maybe: must be writeback, writethrough or none
9: readonly=2: must be yes or no
10: cache-size=1M: no key of [export]
11: descripton=x: unknown key, did you mean description=?
12: store=: empty
14: neither KEY = VALUE nor [SECTION]
15: neither KEY = VALUE nor [SECTION]' "bad keys" <<'END'
[store a]
cache-size = lots
dirty-limt = 1
cache = no
cache-size = 1M
store = mem:1M
[export]
cache = maybe
readonly = 2
cache-size = 1M
descripton = x
store =
# not an error: ; # a
just words
more of them ; = 1
END

says '1: [store a]: store=: missing, say where the blocks end up, like store=raw:/path/to/disk.img
2: [store b]: block-size=8K: larger than page-size=4K
6: [export x]: store=c: there is no [store c]
8: [export y]: store=: missing, which of the stores is it?' "what does not fit" <<'END'
[store a]
[store b]
store = mem:1M
page-size = 4K
block-size = 8K
[export x]
store = c
[export y]
END

says "1: [store]: a name is UTF-8 text
2: [export]: a name is UTF-8 text
4: description=: a description is UTF-8 text
5: [export]: a name has at most 4096 bytes" "what is no text" < <(
	printf '[store \xff]\n[export \xff]\n[export]\ndescription=\xff\n'
	printf '[export %s]\n' "$(head -c 4097 /dev/zero | tr '\0' x)"
)

says " nothing to serve: there is no [export NAME]" \
	"no export" <<'END'
[store a]
store = mem:1M
END

# Long lines: the value whole, the line that cannot be one refused.
says "3: too long, with no = or with too many blanks in a row
4: more than 16383 bytes in a line
5: a zero byte in the line" "long lines" < <(
	printf '[store a]\n'
	printf 'store = mem:1M\n'
	printf 'a%300s\n' b
	printf 'store = %20000s\n' x
	printf 'a=\0\n'
)
spec="[mem:64M]"
for ((i = 0; i < 40; i++)); do
	spec="[sim:nvme,$spec]"
done
ok "a value of ${#spec} bytes" weir-server --check-config --config /dev/stdin <<END
[store a]
store = sim:nvme,$spec
[export]
END

exits 1 "no such file" weir-server --check-config --config "$tmp/none"
like "$out" "$tmp/none: cannot read: No such file" "says so"
exits 1 "a directory" weir-server --check-config --config "$tmp"
exits 1 "a store beside the file" weir-server --check-config \
	--config "$tmp/c" mem:1M
like "$out" 'mem:1M: the stores are those of --config' "says so"
exits 1 "a name beside the file" weir-server --check-config \
	--config "$tmp/c" -e x
exits 0 "without a file" weir-server --check-config mem:1M
exits 1 "without a store" weir-server --check-config
done_testing
