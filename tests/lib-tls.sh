# shellcheck shell=bash disable=SC2154,SC2034 # tmp: lib.sh; names set for scripts
# SPDX-License-Identifier: BSD-3-Clause
#
# lib-tls.sh: certificates of all kinds, and clients that use them. Read after
# lib.sh. GnuTLS makes them: what the server reads with OpenSSL comes from
# elsewhere.

# authority DIR: one that signs; its certificate is DIR/ca-cert.pem, its key
# DIR.key.
authority() {
	mkdir -p "$1"
	printf '%s\n' "cn = authority ${1##*/}" ca cert_signing_key \
		crl_signing_key \
		>"$tmp/template"
	certtool --generate-privkey --key-type=ecdsa --outfile "$1.key" &&
		certtool --generate-self-signed --load-privkey "$1.key" \
			--template "$tmp/template" --outfile "$1/ca-cert.pem"
} >/dev/null 2>&1

# certificate AUTHORITY DIR KIND LINE...: DIR/KIND-{cert,key}.pem, KIND server
# or client, with lines of a template; and the authority's own beside it.
certificate() {
	local by=$1 dir=$2 kind=$3
	shift 3
	mkdir -p "$dir"
	printf '%s\n' "tls_www_$kind" signing_key "$@" >"$tmp/template"
	[ "$by" -ef "$dir" ] || [ -e "$dir/ca-cert.pem" ] ||
		cp "$by/ca-cert.pem" "$dir"
	certtool --generate-privkey --key-type=ecdsa \
		--outfile "$dir/$kind-key.pem" &&
		certtool --generate-certificate \
			--load-privkey "$dir/$kind-key.pem" \
			--load-ca-certificate "$by/ca-cert.pem" \
			--load-ca-privkey "$by.key" \
			--template "$tmp/template" \
			--outfile "$dir/$kind-cert.pem"
} >/dev/null 2>&1

expired=('activation_date = "2020-01-01 00:00:00"'
	'expiration_date = "2021-01-01 00:00:00"')

# x509_uri DIR [HOST]: of the server at $sock, for a client that believes in
# DIR's authority and shows what certificate is there.
x509_uri() {
	echo "nbds+unix://${2:-localhost}/?socket=$sock&tls-certificates=$1"
}

# psk_uri NAME FILE
psk_uri() {
	echo "nbds+unix://$1@/?socket=$sock&tls-psk-file=$2"
}

# connects URI: a client is served.
connects() {
	timeout_run 20 nbdinfo --size "$1"
}

# through URI FILE: it goes in over several connections, and comes out the same.
through() {
	local size
	size=$(stat -c %s "$2")
	timeout_run 60 nbdcopy --flush --connections 4 "$2" "$1" &&
		timeout_run 60 nbdcopy --connections 4 "$1" "$tmp/out.img" &&
		cmp -n "$size" "$2" "$tmp/out.img"
}

# logged REGEX DESCRIPTION: the server says so; it may be on its way.
logged() {
	if wait_until 5 grep -qE "$1" "$weir_log"; then
		pass "$2"
	else
		fail "$2"
		diag "not in the log: $1"
		diag "$(tail -n 5 "$weir_log")"
	fi
}

# refused_start REGEX DESCRIPTION OPTION...: the server does not start, and one
# line says why.
refused_start() {
	local want=$1 what=$2
	shift 2
	out=$(timeout_run 20 weir-server -f -U "$tmp/refused.sock" "$@" \
		mem:1M 2>&1)
	is "$?" 1 "$what: it does not start"
	like "$(grep -c . <<<"$out") $out" "^1 weir-server: .*$want" \
		"$what: it says why"
}

# qemu_url CREDENTIALS: for qemu-io and qemu-img with --image-opts.
qemu_url() {
	echo "driver=nbd,server.type=unix,server.path=$sock,tls-creds=$1"
}
