# shellcheck shell=bash disable=SC2034,SC2154 # names shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
#
# lib-far.sh: a server that stands far away, behind the one that is tested.
# Read after lib.sh.
#
#	far_kind=forgets far_image=$image
#	start_far                      # $far_uri, $far_pid, $far_log
#	start_weir store="$far_uri"
#	kill_far; start_far            # another instance, at the same address
#
# far_kind says what a SIGKILL leaves of what was not flushed:
#	forgets   nothing: weir-server writes back late
#	loses     any of it, by chance: a disk with a volatile cache
#	keeps     all of it: the kernel has it
# far_port=PORT: it listens there, not on a socket.
# far_slow=fault:delay=20ms, makes it likely that something was not.

start_far() {
	local start=(start_weir) WEIR_FRONTEND=server weir_name=far weir_pid sock uri ctl weir_log
	[ -z "${far_port-}" ] || start=(start_weir_tcp "$far_port")
	case $far_kind in
	forgets) "${start[@]}" "$@" store="${far_slow-}$far_image" cache-size=64M ;;
	loses) "${start[@]}" "$@" store="${far_slow-}volatile:$far_image" \
		cache=none ;;
	keeps) "${start[@]}" "$@" store="${far_slow-}$far_image" cache=none ;;
	esac
	far_pid=$weir_pid far_uri=$uri far_log=$weir_log
}

kill_far() {
	finish "$far_pid" KILL 10
}

# far_again [SECONDS]: it dies, and comes again after a while.
far_again() {
	kill_far
	sleep "${1:-0.2}"
	start_far
}
