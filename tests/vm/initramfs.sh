# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# initramfs.sh: what a guest boots from: busybox, programs of the host with
# their libraries, modules of a kernel with what they need. For scripts that
# have read lib.sh.

# vm_kernel: set $vm_kernel and $vm_version to the newest kernel of /boot whose
# modules are there.
vm_kernel() {
	local k
	vm_kernel=
	for k in /boot/vmlinuz-*; do
		[ -d "/lib/modules/${k#/boot/vmlinuz-}" ] || continue
		vm_kernel=$k
		vm_version=${k#/boot/vmlinuz-}
	done
	[ -n "$vm_kernel" ]
}

# vm_file ROOT FILE [PATH]: FILE, at PATH or where it was, and the shared
# libraries it needs.
vm_file() {
	local root=$1 file=$2 path=${3:-$2} lib
	mkdir -p "$root${path%/*}"
	cp -L "$file" "$root$path" || return
	while read -r lib; do
		[ -e "$root$lib" ] && continue
		mkdir -p "$root${lib%/*}"
		cp -L "$lib" "$root$lib" || return
	done < <(ldd "$file" 2>/dev/null | grep -o '/[^ ]*')
}

# vm_programs ROOT NAME...: programs found on PATH, into /bin of the guest.
vm_programs() {
	local root=$1 name path
	shift
	for name; do
		path=$(command -v "$name") || bail "$name is missing: ./setup deps"
		rm -f "$root/bin/$name" # an applet of that name
		vm_file "$root" "$path" "/bin/$name" || return
	done
}

# vm_modules ROOT MODULE...: into /modules, and their order into /modules/list.
vm_modules() {
	local root=$1 module insmod path
	shift
	mkdir -p "$root/modules"
	for module; do
		while read -r insmod path _; do
			[ "$insmod" = insmod ] || continue
			[ -e "$root/modules/${path##*/}" ] && continue
			cp "$path" "$root/modules/" || return
			echo "${path##*/}" >>"$root/modules/list"
		done < <(modprobe -S "$vm_version" --show-depends "$module")
	done
}

# vm_root ROOT INIT: busybox and the directories, INIT as /init, and guest.sh
# for it to read.
vm_root() {
	local root=$1 applet
	mkdir -p "$root"/{bin,dev,etc,lib,mnt,proc,run,sys,tmp,var}
	ln -s ../run "$root/var/run"
	cp "$(command -v busybox)" "$root/bin/busybox"
	for applet in $(busybox --list); do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done
	cp "$2" "$root/init"
	chmod 755 "$root/init"
	cp "$WEIR_SRCDIR/tests/vm/guest.sh" "$root/guest.sh"
	echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	echo '127.0.0.1 localhost' >"$root/etc/hosts"
	# pthread_cancel() and backtraces load it by name.
	vm_file "$root" "$(gcc -print-file-name=libgcc_s.so.1)"
}

# vm_pack ROOT FILE: the archive the kernel unpacks.
vm_pack() {
	(cd "$1" && find . | cpio -o -H newc -R 0:0 --quiet) >"$2"
}

# vm_boot SECONDS INITRAMFS LOG RESULTS DISK...: run the guest to its end. What
# it writes to /dev/ttyS1 is in RESULTS, the kernel's console in LOG.
vm_boot() {
	local seconds=$1 initramfs=$2 log=$3 results=$4 accel=tcg,thread=multi
	local drives=() disk
	shift 4
	for disk; do
		drives+=(-drive "file=$disk,if=virtio,format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap")
	done
	background timeout -k 5 "$seconds" qemu-system-x86_64 \
		-accel "$accel" -cpu max -smp 2 -m 3072 -nographic \
		-nodefaults -no-reboot -monitor none -net none \
		-serial "file:$log" -serial "file:$results" \
		-kernel "$vm_kernel" -initrd "$initramfs" \
		-append "console=ttyS0 quiet panic=-1 tsc=unstable" \
		"${drives[@]}"
	wait $!
}

# vm_results FILE: the guest's tests as ours, and that it came to its end.
vm_results() {
	local line ended=no
	while IFS=$' \r' read -r line; do
		case $line in
		"ok "*) pass "${line#ok }" ;;
		"not ok "*) fail "${line#not ok }" ;;
		"#"*) echo "$line" ;;
		end) ended=yes ;;
		esac
	done < <(tr -d '\r' <"$1")
	is "$ended" yes "the guest ran to its end"
}
