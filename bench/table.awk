# SPDX-License-Identifier: BSD-3-Clause
#
# table.awk: the table of one class and transport, from lines of results:
# class, transport, connections, row, peer, round, MB/s, IOPS, p50, p99, CPU.

function median(list,    v, n, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
			t = v[j]
			v[j] = v[j - 1]
			v[j - 1] = t
		}
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function best(list,    v, n, i, b) {
	n = split(list, v, " ")
	for (i = 1; i <= n; i++)
		if (v[i] + 0 > b)
			b = v[i] + 0
	return b
}

function number(x) {
	return sprintf(x < 10 ? "%.2f" : x < 100 ? "%.1f" : "%.0f", x)
}

function ratio(x, of) {
	return of > 0 ? sprintf("(%.2fx)", x / of) : ""
}

function print_row(row,    i, k, r, rate, cpu) {
	r = row SUBSEP reference
	rate = sprintf("  %-17s %-6s", name[row],
		large[row] ? "MB/s" : "kIOPS")
	cpu = sprintf("  %-17s %-6s", "", "us/op")
	for (i = 1; i <= n; i++) {
		k = row SUBSEP peer[i]
		if (!(k in rates)) {
			rate = rate sprintf(" %22s", "failed")
			cpu = cpu sprintf(" %22s", "")
			continue
		}
		own = peer[i] == reference || !(r in rates)
		rate = rate sprintf(" %14s %7s",
			number(best(rates[k])) "/" number(median(rates[k])),
			own ? "" : ratio(median(rates[k]), median(rates[r])))
		cpu = cpu sprintf(" %14s %7s", number(median(cpus[k])),
			own ? "" : ratio(median(cpus[k]), median(cpus[r])))
	}
	print rate
	print cpu
}

$1 == class && $2 == transport {
	row = $3 SUBSEP $4
	if (!(row in name)) {
		order[++nrows] = row
		name[row] = $4
		conns[row] = $3
		large[row] = $4 ~ /-(1M|64K)/
	}
	k = row SUBSEP $5
	rates[k] = rates[k] " " (large[row] ? $7 : $8 / 1000)
	cpus[k] = cpus[k] " " $11
}

END {
	n = split(peers, peer, " ")
	for (i = 1; i <= nrows; i++) {
		row = order[i]
		if (conns[row] != last) {
			last = conns[row]
			printf "\n%s, %s, %d connection%s\n", class, transport,
				last, last == 1 ? "" : "s"
			printf "  %-17s %-6s", "", ""
			for (j = 1; j <= n; j++)
				printf " %22s", peer[j]
			print ""
		}
		print_row(row)
	}
}
