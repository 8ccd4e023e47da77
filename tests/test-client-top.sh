#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir top: its screen in a terminal of tmux's, and --batch.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need tmux jq

# --- batch --------------------------------------------------------------------

start_weir store=mem:64M cache-size=16M
background weir bench --rw write --bs 64K --runtime 60s --rate 20M "$uri" \
	>"$tmp/bench.out" 2>&1
bench=$!

ok "two samples" weir top --batch -n 2 --interval 1s "$ctl"
is "$(grep -c '^weir top  pid' <<<"$out")" 2 "there are two"
like "$out" "pid $weir_pid " "the process is named"
like "$out" 'mem:64M +\[[#= fs]+\]' "the store has a bar"
row=$(sed -n '/^STORE *RD/{n;p;q}' <<<"$out")
client=$(sed -n '/^CLIENT/{n;p;q}' <<<"$out")
read -ra column <<<"$row"
like "${column[5]}" '[1-9]' "writes have a rate"
like "$client" "pid $bench +1 " "the client is named, with its connection"

exits 1 "no such key" weir top -b --sort size "$ctl"
like "$out" 'expected rate, read, write, dirty or name' "which there are"
exits 1 "no number" weir top -b -n 0 "$ctl"
exits 1 "too often" weir top -b --interval 1ms "$ctl"
exits 1 "no terminal" weir top "$ctl"
like "$out" 'not on a terminal; give --batch' "says what to give"
exits 2 "no server" weir top -b -n 1 "$tmp/none"
like "$out" 'No such file' "says why"

# --- the screen ---------------------------------------------------------------

unset TMUX
term=$tmp/tmux

t() {
	tmux -S "$term" -f /dev/null "$@"
}

screen() {
	t capture-pane -p -t top
}

shows() { # shows REGEX: on the screen, as soon as the machine allows
	screen | grep -qE -- "$1"
}

sees() { # sees REGEX DESCRIPTION
	if wait_until 20 shows "$1"; then
		pass "$2"
	else
		fail "$2"
		diag "expected: $1"
		diag "$(screen)"
	fi
}

keys() {
	t send-keys -t top "$@"
}

TERM=xterm-256color t new-session -d -x 80 -y 24 -s top \
	"weir top --interval 200ms '$ctl'; echo ended with \$?; exec sleep 300"
at_exit t kill-server
sees "^weir top  pid $weir_pid .* by rate" "a title"
sees '^mem:64M +\[' "the store"
sees "^pid $bench +1 +[0-9.]+ +[0-9.]*[1-9]" "the client writes"
sees '^q quit' "the keys"
keys s
sees ' by read' "s sorts otherwise"
keys r
sees ' by read, reversed' "r the other way round"
keys '?'
sees 'q +quit' "? explains"
keys '?'
sees '^mem:64M' "and back"

t resize-window -t top -x 30 -y 6
sees '^STORE +DIRTY +LIMIT' "a narrow one has what matters"
is "$(screen | awk 'length > 30' | wc -l)" 0 "nothing is wider"
keys Down
keys Down
sees '^STORE +RD MB/s' "it scrolls down"
keys End
sees '^CLIENT' "to the end"
keys Home
sees '^STORE +DIRTY' "and back"
t resize-window -t top -x 1 -y 1
t resize-window -t top -x 120 -y 30
sees 'FILL .*PAUSE/s' "a wide one has everything"

keys q
sees 'ended with 0' "q quits"
t kill-session -t top

TERM=xterm-mono t new-session -d -x 80 -y 24 -s top \
	"TERM=vt100 weir top --interval 200ms '$ctl'; echo ended with \$?; exec sleep 300"
sees '^mem:64M +\[' "a terminal without colours"

finish "$bench" INT
stop_weir
sees '^server gone, trying again: ' "the server has gone"
start_weir store=mem:32M cache-size=16M
sees "^weir top  pid $weir_pid" "another has come"
sees '^mem:32M' "with its store"
keys q
sees 'ended with 0' "q quits"
t kill-session -t top

t new-session -d -x 80 -y 24 -s top \
	"TERM=unheard-of weir top '$ctl'; echo ended with \$?; exec sleep 300"
sees 'TERM=unheard-of: this terminal is not known' "an unknown terminal"
sees 'ended with 1' "is refused"
done_testing
