# shellcheck shell=bash disable=SC2034 # names set here are for the scripts
# SPDX-License-Identifier: BSD-3-Clause
#
# lib.sh: what the TAP scripts share. A script reads
#
#	. "${WEIR_SRCDIR:-.}/tests/lib.sh"
#	need qemu-io
#	image=$(make_image 64M)
#	start_weir store="$image" cache-size=1M
#	ok "a pattern can be written" qemu-io -f raw -c 'write -P 7 0 1M' "$uri"
#	stop_weir
#	is "$status" 0 "it ends well"
#	done_testing
#
# and runs as ./run tests/test-X.sh, or by make check. What must hold:
#
#  1. Everything a script starts goes through background() or start_weir(),
#     and is ended when the script ends, whichever way; nothing else is.
#  2. Every wait is bounded.
#  3. Files lie under $tmp, which is removed at the end.
#
# WEIR_FRONTEND=server (the default) or plugin says what start_weir() starts.

set -u
: "${WEIR_SRCDIR:?run this as ./run $0}" "${WEIR_BUILDDIR:?}"
WEIR_FRONTEND=${WEIR_FRONTEND:-server}
export LC_ALL=C

# --- TAP ----------------------------------------------------------------------

tap_count=0
tap_planned=
tap_failed=0

diag() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

# plan N: exactly N tests follow. Else end with done_testing.
plan() {
	tap_planned=$1
	echo "1..$1"
}

done_testing() {
	[ -n "$tap_planned" ] || plan "$tap_count"
}

skip_all() {
	echo "1..0 # SKIP $*"
	tap_planned=0
	exit 0
}

bail() {
	echo "Bail out! $*"
	tap_planned=0
	exit 1
}

pass() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $*"
}

fail() {
	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $*"
}

skip() { # skip REASON DESCRIPTION
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $2 # SKIP $1"
}

# ok DESCRIPTION COMMAND...: the command succeeds. Its output is kept for $out.
ok() {
	exits 0 "$@"
}

# nok DESCRIPTION COMMAND...: the command fails, and is not killed.
nok() {
	local what=$1 rc=0
	shift
	out=$("$@" 2>&1) || rc=$?
	if [ "$rc" -ne 0 ] && [ "$rc" -lt 124 ]; then
		pass "$what"
	else
		fail "$what"
		diag "exit $rc: $*"
		diag "$out"
	fi
}

# exits CODE DESCRIPTION COMMAND...: the command ends with that code.
exits() {
	local want=$1 what=$2 rc=0
	shift 2
	out=$("$@" 2>&1) || rc=$?
	if [ "$rc" -eq "$want" ]; then
		pass "$what"
	else
		fail "$what"
		diag "exit $rc, not $want: $*"
		diag "$out"
	fi
}

is() { # is GOT WANT DESCRIPTION
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3"
		diag "     got: $1"
		diag "expected: $2"
	fi
}

like() { # like TEXT REGEX DESCRIPTION
	if [[ $1 =~ $2 ]]; then
		pass "$3"
	else
		fail "$3"
		diag "     got: $1"
		diag "expected: $2 to match"
	fi
}

# need PROGRAM...: they come from packages of ./setup deps, so that a missing
# one is a failure and no reason to skip.
need() {
	local p
	for p; do
		command -v "$p" >/dev/null ||
			bail "$p is missing: run ./setup deps"
	done
}

# server_only REASON: what follows makes no sense with nbdkit in front.
server_only() {
	[ "$WEIR_FRONTEND" = server ] || skip_all "$*"
}

# sources GLOB...: files of the tree, relative to its top: the tracked ones, or
# all if there is no git here.
sources() {
	local globs=() g f
	(
		cd "$WEIR_SRCDIR" || exit
		git ls-files -- "$@" 2>/dev/null && exit
		for g; do
			globs+=(-o -path "./$g")
		done
		find . \( -path './build*' -o -path ./.git \) -prune -o \
			\( "${globs[@]:1}" \) -type f -printf '%P\n'
	) | while read -r f; do
		[ ! -f "$WEIR_SRCDIR/$f" ] || echo "$f"
	done
}

# --- processes ----------------------------------------------------------------

started=()
cleanups=()

# background COMMAND...: start it; $! is its pid. Ended with the script.
background() {
	"$@" &
	started+=($!)
}

# at_exit COMMAND...: run at the end, last first (an umount, a losetup -d).
at_exit() {
	cleanups=("$(printf '%q ' "$@")" "${cleanups[@]}")
}

# wait_until SECONDS COMMAND...: try it ten times a second.
wait_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# wait_for FILE [SECONDS]: until it is there (a socket, a pid file).
wait_for() {
	wait_until "${2:-10}" test -e "$1"
}

gone() { # gone PID: it has ended, be it waited for or not
	local state
	state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 0
	[ -z "$state" ] || [ "$state" = Z ]
}

# finish PID [SIGNAL [SECONDS]]: end a child and set $status. SIGKILL if it
# does not end in time.
finish() {
	kill -s "${2:-TERM}" "$1" 2>/dev/null
	if ! wait_until "${3:-30}" gone "$1"; then
		diag "pid $1 did not end after SIG${2:-TERM}"
		kill -s KILL "$1" 2>/dev/null
	fi
	status=0
	wait "$1" 2>/dev/null || status=$?
}

# timeout_run SECONDS COMMAND...: as timeout(1), for a client that may hang.
timeout_run() {
	timeout -k 2 "$@"
}

# shellcheck disable=SC2317 # called by the trap
at_end() {
	local rc=$? command pid
	trap - EXIT
	trap '' INT TERM HUP
	for command in "${cleanups[@]}"; do
		eval "$command" >/dev/null 2>&1
	done
	for pid in "${started[@]}"; do
		gone "$pid" || finish "$pid" TERM 10
	done
	if [ -z "$tap_planned" ]; then
		echo "Bail out! $0 ended early, exit $rc"
		[ "$rc" -ne 0 ] || rc=1
	fi
	if [ "$rc" -ne 0 ] || [ "$tap_failed" -ne 0 ]; then
		for log in "$tmp"/*.log; do
			[ ! -s "$log" ] || diag "${log##*/}:
$(tail -n 20 "$log")"
		done
		[ "$rc" -ne 0 ] || rc=1
	fi
	rm -rf "$tmp"
	exit "$rc"
}

# Short, for the 108 bytes of a unix socket's path.
tmp=$(mktemp -d /tmp/weir-test.XXXXXX) || exit 1
trap at_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- weir ---------------------------------------------------------------------

# make_image SIZE [NAME]: a sparse raw image; prints its path.
make_image() {
	local path=$tmp/${2:-disk.img}
	truncate -s "$1" "$path" || return
	echo "$path"
}

# front_end [OPTION... --] KEY=VALUE...: fill $command, to listen as $listen
# says.
front_end() {
	local options=() i
	for ((i = 1; i <= $#; i++)); do
		if [ "${!i}" = -- ]; then
			options=("${@:1:i-1}")
			shift "$i"
			break
		fi
	done
	case $WEIR_FRONTEND in
	server)
		command=(weir-server -f "${listen[@]}" -P "$pidfile"
			--control "$ctl" "${options[@]}" "$@")
		;;
	plugin)
		command=(nbdkit -f "${listen[@]}" -P "$pidfile"
			"${options[@]}" weir control="$ctl" "$@")
		;;
	*)
		bail "WEIR_FRONTEND=$WEIR_FRONTEND is neither server nor plugin"
		;;
	esac
}

weir_settled() {
	[ -s "$pidfile" ] || gone "$weir_pid"
}

# What runs the front end, as prlimit: a prefix that execs.
weir_under=()

launch_weir() {
	local name=${weir_name:-weir} pidfile command
	ctl=$tmp/$name.ctl
	weir_log=$tmp/$name.log
	pidfile=$tmp/$name.pid
	rm -f "$pidfile"
	front_end "$@"
	background "${weir_under[@]}" "${command[@]}" 2>>"$weir_log"
	weir_pid=$!
	wait_until 10 weir_settled
	[ -s "$pidfile" ] || bail "cannot start: ${command[*]}"
}

# start_weir [OPTION... --] KEY=VALUE...: start the front end on a socket of
# its own and wait until it is ready. Sets $weir_pid, $sock, $ctl (the control
# socket), $uri (of the default export) and $weir_log. $weir_name tells several
# apart. Options are what nbdkit and weir-server have in common (-r, -e NAME).
start_weir() {
	sock=$tmp/${weir_name:-weir}.sock
	uri="nbd+unix:///?socket=$sock"
	# nbdkit leaves its socket behind, and does not replace one.
	[ "$WEIR_FRONTEND" = server ] || rm -f "$sock"
	local listen=(-U "$sock")
	launch_weir "$@"
}

# start_weir_tcp PORT [OPTION... --] KEY=VALUE...: the same on 127.0.0.1.
start_weir_tcp() {
	uri="nbd://127.0.0.1:$1"
	local listen=(-i 127.0.0.1 -p "$1")
	shift
	launch_weir "$@"
}

# free_port: a TCP port of loopback that nothing listens on just now.
free_port() {
	local port
	while port=$((20000 + RANDOM % 10000)); do
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

# stop_weir [SIGNAL [SECONDS]]: end it, wait, set $status.
stop_weir() {
	finish "$weir_pid" "${1:-TERM}" "${2:-30}"
}

# kill_weir: SIGKILL, as a crash of the server.
kill_weir() {
	finish "$weir_pid" KILL 10
}

# stat_of COUNTER [STORE]: a counter of the first store, from the control
# socket.
stat_of() {
	weir stats --json "$ctl" |
		jq -er --arg c "$1" '.stores[0] | getpath($c / ".")'
}
