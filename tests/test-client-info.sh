#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir info and weir's own command line: what is printed, and the exit codes.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq nbdkit

start_weir -e disk -- store=mem:8M block-size=4K
uri="nbd+unix:///disk?socket=$sock"

ok "info reaches the export" weir info "$uri"
like "$out" 'export "disk"' "it names the export"
like "$out" '8M \(8388608 bytes\)' "and its size"
like "$out" 'flags .*multi_conn' "and its flags"
like "$out" 'contexts +base:allocation' "and its contexts"

ok "info as JSON" weir info --json "$uri"
json=$out
field() {
	jq -r "$1" <<<"$json"
}
is "$(field .export.size_bytes)" 8388608 "the size, exact"
is "$(field .export.flags.flush)" true "a flag that is set"
is "$(field .export.flags.read_only)" false "a flag that is not"
is "$(field '.exports[0].name')" disk "the server's list of exports"
is "$(field .protocol)" newstyle-fixed "the protocol"

background nbdkit -f -U "$tmp/ro.sock" -r memory 1M
wait_for "$tmp/ro.sock"
ok "another server's export" weir info "nbd+unix:///?socket=$tmp/ro.sock"
like "$out" 'flags .*read_only' "is seen to be read-only"

for command in info bench; do
	exits 2 "no such export: $command" weir "$command" \
		"nbd+unix:///none?socket=$sock"
	like "$out" "^weir $command: .*: no such export; the server has \"disk\"" \
		"says which there are"
done
exits 2 "no server there" weir info "nbd+unix:///?socket=$tmp/none"
like "$out" '^weir info: .*No such file' "says why in one line"
exits 1 "not a URI" weir info "$sock"
exits 1 "another kind of URI" weir info http://localhost/
like "$out" '^weir info: http://localhost/: not an NBD URI; try ' "says so"
exits 1 "nearly one" weir info "nbd+foo:///?socket=$sock"
exits 1 "no URI" weir info
exits 1 "two URIs" weir info "$uri" "$uri"
for command in attach bench detach drop info reset set stats; do
	exits 1 "an unknown option" weir "$command" --colour "$uri"
	like "$out" "^weir $command: --colour: .*; try 'weir $command --help'" \
		"is told in one line, and where to look"
done
exits 1 "an option without its argument" weir attach -C
like "$out" "^weir attach: -C: its argument is missing; try 'weir att" "is told"

ok "weir --version" weir --version
like "$out" '^weir [0-9]' "prints name and version"
exits 1 "no command" weir
exits 1 "an unknown command" weir frobnicate
ok "weir --help" weir --help
mapfile -t commands < <(sed -nE 's/^  ([a-z]+) .*/\1/p' <<<"$out")
for command in "${commands[@]}"; do
	ok "weir $command --help" weir "$command" --help
	like "$out" "^usage: weir $command" "explains $command"
done

stop_weir
done_testing
