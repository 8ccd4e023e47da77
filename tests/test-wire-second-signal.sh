#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The store hangs: a first signal waits for it, a second one ends the server at
# once, and shutdown-timeout does the same by itself. What is lost is named.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit takes the plugin's signals"
image=$(make_image 16M)

start_weir store="fault:hang=always,op=write,[$image]"
is "$(session <<<$'write 1 1048576 65536 0x61\nrecv\nrst')" "1 error 0" \
	"a write is answered"
kill -TERM "$weir_pid"
sleep 0.5
ok "one signal: it waits" kill -0 "$weir_pid"
stop_weir INT 5
is "$status" 2 "the second one ends it"
like "$(cat "$weir_log")" 'second signal' "it says so"
like "$(cat "$weir_log")" '1048576|1M|0x100000' "and names what is lost"
ok "the socket is removed" test ! -e "$sock"

weir_name=timeout start_weir store="fault:hang=always,op=write,[$image]" \
	shutdown-timeout=500ms
is "$(session <<<$'write 1 2097152 65536 0x61\nrecv\nrst')" "1 error 0" \
	"a write is answered"
stop_weir TERM 15
is "$status" 2 "after shutdown-timeout it ends by itself"
like "$(cat "$weir_log")" '2097152|2M|0x200000' "and names what is lost"
done_testing
