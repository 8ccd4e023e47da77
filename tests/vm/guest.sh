# shellcheck shell=dash
# SPDX-License-Identifier: BSD-3-Clause
#
# guest.sh: the beginning of the first process of a guest, which reads it as
# /guest.sh: devices, modules, and tests. A test is a line on the second serial
# port: "ok WHAT" or "not ok WHAT", "# ..." to explain; "end" at the end.
# $fs, if it is set, stands before what each test is of.

PATH=/bin:/usr/bin:/usr/sbin:/sbin
export PATH

mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
exec 3>/dev/ttyS1
while read -r module; do
	insmod "/modules/$module" 2>/dev/null
done </modules/list
ip link set lo up

say() {
	echo "$*" >&3
}

# check WHAT COMMAND...: a test, and its result; its output only if it fails.
check() {
	what=$1
	shift
	rc=0
	"$@" >/tmp/out 2>&1 || rc=$?
	if [ $rc -eq 0 ]; then
		say "ok ${fs:+$fs: }$what"
	else
		say "not ok ${fs:+$fs: }$what"
		say "# exit $rc: $*"
		tail -n 15 /tmp/out | sed 's/^/# /' >&3
	fi
	return $rc
}

# finish: the end of the guest.
finish() {
	say end
	sync
	poweroff -f
}

# server_starts PID: wait until it has written /run/pid.
server_starts() {
	server=$1
	n=0
	while [ ! -s /run/pid ] && [ $n -lt 100 ]; do
		sleep 0.1
		n=$((n + 1))
	done
}

end_server() {
	kill -TERM "$server"
	wait "$server"
}
