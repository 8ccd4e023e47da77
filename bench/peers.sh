# shellcheck shell=bash disable=SC2034,SC2154 # names of race
# SPDX-License-Identifier: BSD-3-Clause
#
# peers.sh: the servers of the race: how each is started, found and ended.
#
#  1. Every server gets an image of its own, written once from end to end
#     before the first row, and read once, so that reads find what a warm server has.
#  2. A server that is not installed is named as missing, not passed over.
#  3. Only what was started here is ended.

declare -A class_peers=(
	[memory]="weir-server nbdkit-weir nbdkit-memory"
	[file]="weir-server nbdkit-weir nbdkit-file nbdkit-file-cache qemu-nbd nbd-server"
)
# What the ratios in the table are of.
declare -A class_reference=(
	[memory]=nbdkit-memory
	[file]=nbdkit-file
)

running=()
missing=()
declare -A peer_uri peer_pid

# free_port: a TCP port of loopback that nothing listens on just now.
free_port() {
	local port
	while port=$((20000 + RANDOM % 10000)); do
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

is_installed() {
	case $1 in
	weir-server | qemu-nbd | nbd-server) command -v "$1" >/dev/null ;;
	nbdkit-weir) nbdkit weir --dump-plugin >/dev/null 2>&1 ;;
	nbdkit-memory) nbdkit memory --dump-plugin >/dev/null 2>&1 ;;
	nbdkit-file) nbdkit file --dump-plugin >/dev/null 2>&1 ;;
	nbdkit-file-cache)
		nbdkit --filter=cache null --dump-plugin >/dev/null 2>&1
		;;
	esac
}

# For nbd-server: TLS in the general part of its configuration.
tls_lines() {
	[ "$tls" = yes ] || return 0
	cat <<END
	certfile = $tmp/pki/server-cert.pem
	keyfile = $tmp/pki/server-key.pem
	cacertfile = $tmp/pki/ca-cert.pem
	force_tls = true
END
}

# nbd_server_config IMAGE SOCKET PORT
nbd_server_config() {
	cat <<END
[generic]
	$([ -n "$2" ] && echo "unixsock = $2")
	listenaddr = 127.0.0.1
	port = $3
	allowlist = true
$(tls_lines)
[disk]
	exportname = $1
	flush = true
	fua = true
	trim = true
END
}

# peer_command PEER CLASS SOCKET PORT IMAGE: fill $command. SOCKET is empty for
# TCP; nbd-server has a port in any case.
peer_command() {
	local peer=$1 class=$2 socket=$3 port=$4 image=$5
	local listen=(-U "$socket") store=$image
	local qemu_tls=()
	[ -n "$socket" ] || listen=(-i 127.0.0.1 -p "$port")
	if [ "$tls" = yes ]; then
		listen+=(--tls=require --tls-certificates="$tmp/pki")
		qemu_tls=(--object "tls-creds-x509,id=t,endpoint=server,dir=$tmp/pki"
			--tls-creds t)
	fi
	[ "$class" = file ] || store=mem:$size
	case $peer in
	weir-server)
		command=(weir-server -f "${listen[@]}" store="$store"
			"${weir_keys[@]}")
		;;
	nbdkit-weir)
		command=(nbdkit -f "${listen[@]}" weir store="$store"
			"${weir_keys[@]}")
		;;
	nbdkit-memory) command=(nbdkit -f "${listen[@]}" memory "$size") ;;
	nbdkit-file) command=(nbdkit -f "${listen[@]}" file "$image") ;;
	nbdkit-file-cache)
		command=(env TMPDIR="$tmp" nbdkit -f "${listen[@]}"
			--filter=cache file "$image" cache=writeback)
		;;
	qemu-nbd)
		listen=(-k "$socket")
		[ -n "$socket" ] || listen=(-b 127.0.0.1 -p "$port")
		command=(qemu-nbd -t -f raw --cache=writeback --aio=io_uring
			-e 16 "${listen[@]}" "${qemu_tls[@]}" "$image")
		;;
	nbd-server)
		nbd_server_config "$image" "$socket" "$port" >"$tmp/$peer.conf"
		command=(nbd-server -C "$tmp/$peer.conf" -p "$tmp/$peer.pid")
		;;
	esac
}

# is_ready URI SECONDS
is_ready() {
	local end=$((SECONDS + $2))
	until weir info "$1" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

start_peer() {
	local peer=$1 class=$2 transport=$3 command
	local image=$tmp/$peer.img socket='' port name='' scheme=nbd query=''
	if [ "$tls" = yes ]; then
		scheme=nbds query=tls-certificates=$tmp/pki
	fi
	port=$(free_port)
	[ "$peer" != nbd-server ] || name=disk
	peer_uri[$peer]="$scheme://127.0.0.1:$port/$name?$query"
	if [ "$transport" = unix ]; then
		socket=$tmp/$peer.sock
		peer_uri[$peer]="$scheme+unix:///$name?socket=$socket&$query"
	fi
	[ "$class" = memory ] || truncate -s "$size" "$image"
	peer_command "$peer" "$class" "$socket" "$port" "$image"
	setsid "${command[@]}" >"$tmp/$peer.log" 2>&1 </dev/null &
	peer_pid[$peer]=$!
	if ! is_ready "${peer_uri[$peer]}" 10; then
		tail -n 3 "$tmp/$peer.log" >&2
		stop_peer "$peer"
		return 1
	fi
	# nbd-server goes to the background whatever it is told.
	[ "$peer" != nbd-server ] || peer_pid[$peer]=$(cat "$tmp/$peer.pid")
}

# Twice over: the second time no memory is touched for the first time.
fill_peer() {
	weir bench --rw write --bs 1M --iodepth 4 --size "$size" \
		--io-size $((2 * size_bytes)) "${peer_uri[$1]}" >/dev/null &&
		weir bench --rw read --bs 1M --iodepth 4 --size "$size" \
			"${peer_uri[$1]}" >/dev/null
}

# start_peers CLASS TRANSPORT: those asked for that are there: $running.
start_peers() {
	local peer
	running=()
	for peer in ${class_peers[$1]}; do
		[ -z "$peers" ] || [[ $peers = *,$peer,* ]] || continue
		progress "starting $peer"
		if ! is_installed "$peer"; then
			[[ " ${missing[*]-} " = *" $peer "* ]] || missing+=("$peer")
			continue
		fi
		if start_peer "$peer" "$1" "$2" && fill_peer "$peer"; then
			running+=("$peer")
		else
			progress ''
			echo "race: $peer, $1, $2: it cannot be started or filled" >&2
			failures+=("$1 $2 $peer")
		fi
	done
}

stop_peer() {
	local pid=${peer_pid[$1]-} i
	[ -n "$pid" ] || return 0
	kill "$pid" 2>/dev/null
	for ((i = 0; i < 100; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	unset "peer_pid[$1]" "peer_uri[$1]"
	rm -f "$tmp/$1.img" "$tmp/$1.sock" "$tmp/$1.pid"
}

stop_peers() {
	local peer
	for peer in "${!peer_pid[@]}"; do
		stop_peer "$peer"
	done
	running=()
}
