#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir-server --metrics: the format, the numbers, who asks too much, health.

# shellcheck disable=SC2016 # what is in single quotes is awk's

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need curl jq
if weir-server -f --metrics 127.0.0.1:x mem:1M 2>&1 | grep -q 'built without'
then
	skip_all "weir-server is built without --metrics"
fi

# get PATH [OPTION...]: over HTTP.
get() {
	local path=$1
	shift
	curl -sg --max-time 20 "$@" "http://$at$path"
}

code() {
	get "$1" -o /dev/null -w '%{http_code}' "${@:2}"
}

well_formed() {
	awk -f "$WEIR_SRCDIR/tests/metrics.awk" "$1"
}

# --- the format, and that what checks it does ---------------------------------

at=127.0.0.1:$(free_port)
start_weir --metrics "$at" -e 'a "name" \ of
lines' -- "store=sim:ssd,mem:64M" cache-size=16M

ok "a scrape" get /metrics -o "$tmp/first"
ok "every line is as the format wants" well_formed "$tmp/first"
like "$(get /metrics -D - -o /dev/null)" \
	'Content-Type: text/plain; version=0.0.4' "its type is told"
broken() { # broken DESCRIPTION PROGRAM: awk spoils the text
	awk "$2" "$tmp/first" >"$tmp/broken"
	nok "$1 is seen" well_formed "$tmp/broken"
}
broken "a sample twice" '{ print } /^weir_store_hits_total/ { print }'
broken "a family in two parts" '{ print } END { print "weir_build_info{version=\"x\"} 1" }'
broken "a sample without TYPE" '!/^# TYPE weir_store_hits_total/'
broken "a counter without _total" '{ gsub("hits_total", "hits"); print }'
broken "no number" '/^weir_store_hits_total/ { $2 = "many" } { print }'
broken "a quote too many" '/^weir_store_hits/ { sub("}", "\"}") } { print }'
broken "a bucket that is too small" '/le="\+Inf"/ { $NF = "99" } { print }'
broken "an empty text" '0'
like "$(cat "$tmp/first")" 'export="a \\"name\\" \\\\ of\\nlines"' \
	"a name is escaped"

# --- the numbers --------------------------------------------------------------

# sample FILE NAME [LABEL]: its value.
sample() {
	grep -F "$2{" "$1" | grep -F -- "${3-}" | awk '{ print $NF }'
}

uri="nbd+unix:///a%20%22name%22%20%5C%20of%0Alines?socket=$sock"
ok "writes" weir bench --rw randwrite --bs 4K --size 4M "$uri"
ok "reads" weir bench --rw randread --bs 4K --size 4M "$uri"
sleep 0.2 # the age of an answer, at most
get /metrics -o "$tmp/second"
ok "the format again" well_formed "$tmp/second"
weir stats --json "$ctl" >"$tmp/stats"
while read -r name path; do
	is "$(sample "$tmp/second" "${name%,*}" "$(cut -sd, -f2 <<<"$name")")" \
		"$(jq -r ".stores[0].$path" "$tmp/stats")" "$name is $path"
done <<'END'
weir_requests_total,op="write" requests.write.ops
weir_requests_total,op="read" requests.read.ops
weir_request_bytes_total,op="write" requests.write.bytes
weir_request_latency_seconds_count,op="read" latency.read.count
weir_request_latency_seconds_count,op="flush" latency.flush.count
weir_store_hits_total hits
weir_store_misses_total misses
weir_store_write_bytes_total store_write_bytes
weir_store_dirty_limit_bytes dirty_limit_bytes
weir_store_size_bytes size_bytes
END
is "$(sample "$tmp/second" weir_request_latency_seconds_sum 'op="flush"')" \
	"$(jq -r '.stores[0].latency.flush.sum_us / 1e6' "$tmp/stats" |
		awk '{ printf "%.6f\n", $1 }')" "times are in seconds"

# Counters of the first in the second, as far as they are in both.
went_back() {
	awk '/^# TYPE/ { counter[$3] = $4 == "counter"; next }
		/^#/ { next }
		{ name = $1; sub(/\{.*/, "", name); key = $0
			sub(/ [^ ]*$/, "", key) }
		FNR == NR { before[key] = $NF; next }
		counter[name] && $NF < before[key] { print key }' \
		"$tmp/first" "$tmp/second"
}
is "$(went_back)" "" "no counter went back"

# --- HTTP ---------------------------------------------------------------------

is "$(code /metrics)" 200 "metrics"
is "$(code /metrics -I)" 200 "the head of them"
is "$(code /healthz)" 200 "healthy"
is "$(get /healthz)" ok "in a word"
is "$(code /)" 404 "nothing else is there"
is "$(code /metrics -d x=y)" 405 "nothing is taken"
exits 1 "a port that is taken" weir-server -f -U "$tmp/other.sock" \
	--metrics "$at" mem:1M
like "$out" "^weir-server: --metrics $at: cannot listen: Address already" "says so"
for bad in 127.0.0.1 127.0.0.1:99999 ::1:80 '[::1]' :80 127.0.0.1:8o; do
	exits 1 "--metrics $bad" weir-server -f -U "$tmp/other.sock" \
		--metrics "$bad" mem:1M
	like "$out" "^weir-server: --metrics .*expected ADDR:PORT" "says what is expected"
done

# --- those who ask too much ---------------------------------------------------

# Connections that send half a request, and then nothing.
slow=()
for ((i = 0; i < 40; i++)); do
	exec {fd}<>"/dev/tcp/${at%:*}/${at##*:}" || break
	printf 'GET /metrics HTTP/1.1\r\nHost: ' >&"$fd"
	slow+=("$fd")
done
is "${#slow[@]}" 40 "forty slow ones"
is "$(code /metrics)" 200 "another is answered beside them"
background bash -c "while curl -s -o /dev/null 'http://$at/metrics'; do :; done"
greedy=$!
ok "and the disk is served" timeout_run 30 weir bench --rw randwrite \
	--bs 4K --size 4M "$uri"
finish "$greedy"
for fd in "${slow[@]}"; do
	exec {fd}>&-
done
stop_weir
is "$status" 0 "it ends well"
nok "nothing answers any more" get /metrics

# --- health -------------------------------------------------------------------

at="[::1]:$(free_port)"
(: <"/dev/tcp/::1/${at##*:}") 2>"$tmp/probe"
grep -q 'Cannot assign\|not supported' "$tmp/probe" &&
	at=127.0.0.1:$(free_port)
start_weir --metrics "$at" -- store="fault:write-error=always,mem:16M" cache-size=4M
is "$(code /healthz)" 200 "healthy as long as nothing is written"
nok "a flush fails" weir bench --rw write --bs 4K --size 64K "$uri"
unhealthy() {
	[ "$(code /healthz)" = 503 ]
}
ok "not healthy" wait_until 20 unhealthy
like "$(get /healthz)" '^store .*: writes fail' "and why"
is "$(code /metrics)" 200 "the metrics are there"
get /metrics -o "$tmp/failing"
ok "they say it too" test "$(sample "$tmp/failing" weir_store_failing_ranges)" -gt 0
kill_weir
done_testing
