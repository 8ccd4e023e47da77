#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several engines live in one process, so no code has state of its own: no
# object of the engine or the server has anything in a writable section. (The
# plugin has: nbdkit hands it its configuration before there is a handle.)

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need objdump

# writable OBJECT...: its variables that are not const.
writable() {
	objdump -t "$@" | awk '
		/file format/ { file = $1 }
		NF < 5 { next }
		$(NF - 2) ~ /^(\.data|\.bss|\.tbss|\.tdata|COM|\*COM\*)(\..*)?$/ &&
		$(NF - 2) !~ /^\.data\.rel\.ro/ &&
		$(NF - 1) !~ /^0+$/ { print file, $NF }'
}

echo 'int mutable = 1; static int hidden; int get(void) { return hidden++; }
const char *const fixed[] = {"a", "b"};' >"$tmp/probe.c"
ok "a probe compiles" gcc -fPIC -c "$tmp/probe.c" -o "$tmp/probe.o"
is "$(writable "$tmp/probe.o" | awk '{print $2}' | sort | xargs)" \
	"hidden mutable" "the check sees variables and no constants"

for folder in engine server; do
	objects=$(find "$WEIR_BUILDDIR/$folder" -name '*.o' \
		! -path '*/.libs/*.so*')
	[ -n "$objects" ] || continue
	# The process's log has one sink, set before any thread starts.
	# shellcheck disable=SC2086 # a list of names of ours
	is "$(writable $objects | grep -v '/log\.o: log_to$')" "" \
		"$folder has no variable outside functions"
done
done_testing
