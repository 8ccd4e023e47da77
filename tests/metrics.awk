# SPDX-License-Identifier: BSD-3-Clause
#
# metrics.awk: is this Prometheus' text format, and are the names what its
# rules want? Prints what is wrong, a line each; ends with 1 if anything is.

function wrong(what) {
	print "line " NR ": " what ": " $0
	bad = 1
}

# The family a sample belongs to, by the suffixes its type allows.
function family(name,   base) {
	base = name
	if (sub(/_(bucket|sum|count)$/, "", base) && type[base] == "histogram")
		return base
	return name
}

# Take name="value",... apart into label[]; false if it is not that.
function labels(text,   name, value, c) {
	delete label
	while (text != "") {
		if (!match(text, /^[a-zA-Z_][a-zA-Z0-9_]*="/))
			return 0
		name = substr(text, 1, RLENGTH - 2)
		text = substr(text, RLENGTH + 1)
		value = ""
		while ((c = substr(text, 1, 1)) != "\"") {
			if (c == "" || c == "\n")
				return 0
			if (c == "\\") {
				c = substr(text, 1, 2)
				if (c !~ /^\\[\\n"]$/)
					return 0
			}
			value = value c
			text = substr(text, length(c) + 1)
		}
		text = substr(text, 2)
		if (name in label || name ~ /^__/)
			return 0
		label[name] = value
		if (text != "" && !sub(/^,/, "", text))
			return 0
	}
	return 1
}

# Buckets grow with le, and +Inf is the count.
function bucket(series, le, value) {
	if (series == last_series) {
		if (last_le == "+Inf" || (le != "+Inf" && le + 0 <= last_le + 0))
			wrong("le does not grow")
		if (value + 0 < last_value + 0)
			wrong("a bucket holds less than the one below")
	}
	last_series = series
	last_le = le
	last_value = value
	if (le == "+Inf")
		infinite[series] = value
}

/^# HELP / {
	if ($3 in help)
		wrong("a second HELP")
	if (NF < 4)
		wrong("no text")
	help[$3] = 1
	next
}

/^# TYPE / {
	if ($3 in type)
		wrong("a second TYPE")
	if (!($3 in help))
		wrong("no HELP before it")
	if (NF != 4 || $4 !~ /^(counter|gauge|histogram)$/)
		wrong("no type")
	if ($3 !~ /^[a-z_][a-z0-9_]*$/)
		wrong("not a name")
	if ($3 !~ /^(weir|process)_/)
		wrong("no prefix")
	if (($4 == "counter") != ($3 ~ /_total$/))
		wrong("_total is for counters, and they have it")
	if ($3 ~ /_(us|ms|ns|kb|mb|milliseconds|microseconds|percent)(_|$)/)
		wrong("not a base unit")
	if ($3 ~ /_(bucket|sum|count)$/)
		wrong("a suffix of histograms")
	type[$3] = $4
	families++
	next
}

/^#/ || /^$/ {
	wrong("neither HELP, TYPE nor a sample")
	next
}

{
	line = $0
	if (!match(line, /^[a-zA-Z_:][a-zA-Z0-9_:]*/)) {
		wrong("no name")
		next
	}
	name = substr(line, 1, RLENGTH)
	line = substr(line, RLENGTH + 1)
	text = ""
	if (substr(line, 1, 1) == "{") {
		end = 0
		for (i = length(line); i > 1; i--) {
			if (substr(line, i, 1) == "}") {
				end = i
				break
			}
		}
		text = substr(line, 2, end - 2)
		line = substr(line, end + 1)
	}
	if (!labels(text))
		wrong("not labels")
	if (line !~ /^ [-+]?([0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?|Inf|NaN)$/)
		wrong("no value")
	value = substr(line, 2)
	f = family(name)
	if (!(f in type))
		wrong("no TYPE before it")
	if (f != current && f in seen)
		wrong("samples of a family are not together")
	current = f
	seen[f] = 1
	if ((name, text) in sample)
		wrong("a second sample of that name and labels")
	sample[name, text] = 1
	samples++
	if (type[f] == "counter" && value + 0 < 0)
		wrong("a counter below 0")
	if (type[f] == "histogram") {
		series = f " " label["store"] " " label["op"]
		if (name ~ /_bucket$/)
			bucket(series, label["le"], value)
		else if (name ~ /_count$/)
			count[series] = value
		else if (name ~ /_sum$/)
			sum[series] = value
		else
			wrong("no part of a histogram")
	}
}

END {
	for (s in count)
		if (!(s in infinite) || !(s in sum) || infinite[s] != count[s]) {
			print "histogram " s ": count, sum and +Inf disagree"
			bad = 1
		}
	if (!samples || !families) {
		print "nothing there"
		bad = 1
	}
	exit bad
}
