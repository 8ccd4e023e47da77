#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Who may include whom. A folder of the engine includes itself, base/, and the
# public header of the folders to its right; a front end includes engine.h,
# control.h and base/ only; the client and the tools may use the public headers.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

layers=(throttle writeback cache placement store)
cd "$WEIR_SRCDIR" || bail "no source directory"

# may_include FOLDER HEADER: both relative to the top of the tree.
may_include() {
	local folder=$1 header=$2 right='' layer
	[ "${header%/*}" != "$folder" ] || return 0
	case $folder in
	engine/base | engine/fsaware)
		[ "${header%/*}" = engine/base ]
		return
		;;
	esac
	[ "${header%/*}" != engine/base ] || return 0
	case $folder in
	server | plugin)
		[ "$header" = engine/engine.h ] ||
			[ "$header" = engine/control.h ]
		return
		;;
	client)
		[ "$header" != engine/engine.h ] || return 0
		right=yes
		;;
	engine)
		right=yes
		;;
	esac
	[ "$header" != engine/fsaware/fsaware.h ] || return "$((! ${#right}))"
	for layer in "${layers[@]}"; do
		if [ -n "$right" ] && [ "$header" = "engine/$layer/$layer.h" ]
		then
			return 0
		fi
		[ "$folder" != "engine/$layer" ] || right=yes
	done
	return 1
}

# header_of FILE NAME: what #include "NAME" in FILE means, if it is ours.
header_of() {
	local dir
	for dir in "${1%/*}" engine .; do
		[ -f "$dir/$2" ] || continue
		realpath -m --relative-to=. "$dir/$2"
		return
	done
	echo "$2"
}

check_folder() {
	local folder=$1 file line files broken=()
	mapfile -t files < <(sources "$folder/*.c" "$folder/*.h" |
		grep -x "$folder/[^/]*")
	while IFS=: read -r file line; do
		line=$(header_of "$file" "$line")
		may_include "$folder" "$line" || broken+=("$file: $line")
	done < <(grep -HoP '^\s*#\s*include\s*"\K[^"]+' \
		"${files[@]}" /dev/null)
	is "${broken[*]-}" "" "$folder includes only what it may"
}

# The rules themselves.
ok "the cache may use the store" \
	may_include engine/cache engine/store/store.h
nok "but not its insides" may_include engine/cache engine/store/file.h
nok "nor what is to its left" \
	may_include engine/cache engine/writeback/writeback.h
nok "the base uses no layer" may_include engine/base engine/store/store.h
nok "a front end uses no layer" may_include server engine/cache/cache.h

for folder in engine/base engine/fsaware "${layers[@]/#/engine/}" engine \
	server plugin client; do
	[ -z "$(sources "$folder/*.[ch]")" ] || check_folder "$folder"
done

for layer in "${layers[@]}"; do
	[ -z "$(sources "engine/$layer/*.c")" ] ||
		ok "$layer has a public header" \
			test -f "engine/$layer/$layer.h"
done
done_testing
