#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit around a command (--run), and nbdkit as a client's child: activated on
# the client's socket, and on standard input and output (-s).
# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
need nbdkit qemu-img nbdcopy nbdinfo cmp perl

size=$((24 << 20))
source=$tmp/source.img
{
	seq 1 1500000
	head -c 3M /dev/zero
	seq 3000000 4000000
} | head -c "$size" >"$source"
truncate -s "$size" "$source"

# unlocked IMAGE: no server has it any more; --run does not wait for its own.
unlocked() {
	nbdkit -U - weir "$1" --run 'exit 0'
}

image=$(make_image 24M run.img)
# shellcheck disable=SC2016 # $uri is nbdkit's
ok "--run: qemu-img convert into it" timeout_run 60 \
	nbdkit -U - weir "$image" cache-size=4M \
	--run "qemu-img convert -n -f raw -O raw '$source' \$uri"
ok "--run: the server ends" wait_until 20 unlocked "$image"
ok "--run: the image is the source" cmp "$source" "$image"
ok "--run: qemu-img compare through it" timeout_run 60 \
	nbdkit -r -U - weir "$image" cache-size=4M \
	--run "qemu-img compare -f raw -F raw '$source' \$uri"
exits 7 "--run: the command's exit code comes out" timeout_run 20 \
	nbdkit -U - weir mem:1M --run 'exit 7'

# Socket activation: the client starts nbdkit and hands it a socket.
image=$(make_image 24M activated.img)
ok "activated: nbdcopy into it" timeout_run 60 nbdcopy -- \
	"$source" [ nbdkit weir "$image" cache-size=4M ]
ok "activated: the server ends" wait_until 20 unlocked "$image"
ok "activated: the image is the source" cmp "$source" "$image"
ok "activated: nbdcopy out of it" timeout_run 60 nbdcopy -- \
	[ nbdkit weir "$image" cache-size=4M readonly=yes ] "$tmp/out.img"
ok "activated: the copy is the source" cmp "$source" "$tmp/out.img"

ok "nbdinfo" timeout_run 20 nbdinfo -- [ nbdkit weir "$image" ]
for word in "export-size: $size" "can_cache: true" "can_fast_zero: true" \
	"can_flush: true" "can_fua: true" "can_multi_conn: true" \
	"can_trim: true" "can_zero: true" "is_read_only: false"; do
	like "$out" "$word" "  $word"
done
ok "nbdinfo on -r" timeout_run 20 nbdinfo -- [ nbdkit -r weir "$image" ]
like "$out" "is_read_only: true" "  is_read_only: true"
ok "nbdinfo lists the export" timeout_run 20 \
	nbdinfo --list -- [ nbdkit weir "$image" ]
like "$out" "description: .*activated.img" "  with what it is"

# Standard input and output: serve the first connection to a socket on them.
image=$(make_image 24M stdio.img)
# shellcheck disable=SC2016 # perl's variables
inetd='$l = IO::Socket::UNIX->new(Local => shift, Listen => 1) or die;
	$c = $l->accept or die;
	open STDIN, "<&", $c; open STDOUT, ">&", $c; exec @ARGV'
stdio() {
	rm -f "$tmp/stdio"
	background perl -MIO::Socket::UNIX -e "$inetd" "$tmp/stdio" \
		nbdkit -s weir "$image" cache-size=4M
	wait_for "$tmp/stdio"
}
uri="nbd+unix:///?socket=$tmp/stdio"
stdio
ok "-s: nbdcopy into it" timeout_run 60 nbdcopy -C 1 "$source" "$uri"
ok "-s: the server ends" wait_until 20 gone "$!"
ok "-s: the image is the source" cmp "$source" "$image"
stdio
ok "-s: nbdcopy out of it" timeout_run 60 nbdcopy -C 1 "$uri" "$tmp/out2.img"
ok "-s: the copy is the source" cmp "$source" "$tmp/out2.img"
done_testing
