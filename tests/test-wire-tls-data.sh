#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Data through TLS comes out as it went in: requests of all sizes, many at a
# time, over several connections, with either version; and with less memory than
# a connection asks for.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need psktool nbdcopy cmp

keys=$tmp/keys.psk
psktool -u alice -p "$keys" >/dev/null 2>&1
image=$(make_image 64M)
head -c 64M /dev/urandom >"$tmp/source.img"

verified() { # verified BS DEPTH JOBS [OPTION...]: written, read and compared
	local bs=$1 depth=$2 jobs=$3
	shift 3
	timeout_run 60 weir bench --rw randwrite --bs "$bs" --iodepth "$depth" \
		--numjobs "$jobs" --size $((64 / jobs))M \
		--offset-increment $((64 / jobs))M --verify "$@" "$uri"
}

# rounds WHAT: all of it.
rounds() {
	ok "$1: 1M, four connections" verified 1M 8 4
	ok "$1: 4K, deep, two connections" verified 4K 32 2 --io-size 8M
	ok "$1: sizes that fit no record" verified 9K 16 2 --io-size 16M
	ok "$1: a copy of large requests" through "$uri" "$tmp/source.img"
}

start_weir --tls=require --tls-psk="$keys" -- store="$image" cache-size=96M
uri=$(psk_uri alice "$keys")
rounds "TLS 1.3"
printf '[overrides]\ndisabled-version = tls1.3\n' >"$tmp/gnutls.conf"
export GNUTLS_SYSTEM_PRIORITY_FILE=$tmp/gnutls.conf
rounds "TLS 1.2"
unset GNUTLS_SYSTEM_PRIORITY_FILE
stop_weir
is "$status" 0 "it ends well"
ok "what was flushed is in the image" cmp "$tmp/source.img" "$image"

# The reader is held back while it waits for memory: bytes that lie decrypted
# already must not be forgotten then.
weir_name=small
start_weir --tls=require --tls-psk="$keys" -- store="$image" cache-size=4M \
	inflight-bytes=1M
uri=$(psk_uri alice "$keys")
rounds "with little in flight"
stop_weir
is "$status" 0 "it ends well"
ok "what was flushed is in the image" cmp "$tmp/source.img" "$image"
done_testing
