#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Power cuts on a pool (tests/model.c): at every flush and at random moments
# what one would leave is opened and compared with the shadow, and so is what one
# leaves. WEIR_CRASH_SEEDS says how many seeds. And it bites: a pool that breaks
# a rule on purpose is found out.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

model=$WEIR_BUILDDIR/tests/model

ok "seeds 1 to ${WEIR_CRASH_SEEDS:-200}" \
	"$model" --pool --seeds "${WEIR_CRASH_SEEDS:-200}"
while read -r name what; do
	ok "it finds a pool that $what" \
		timeout_run 300 "$model" --pool --sabotage "$name" --seeds 2000
done <<END
no-data-flush commits without flushing the data
no-last-flush answers before the second flush
early-free frees space before that is durable
bad-record replays past a bad journal entry
END
done_testing
