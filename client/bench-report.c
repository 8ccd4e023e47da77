/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-report.c: a run's figures. MB is 1000000 bytes; bs and sizes are in
 * powers of 1024. CPU per operation counts reads and writes.
 */
#include <stdio.h>

#include "base/size.h"
#include "bench.h"

static const char *const op_names[BENCH_OPS] = {"read", "write", "flush"};

static double per_second(uint64_t n, const struct bench_result *r)
{
	return r->elapsed_ns ? (double)n * 1e9 / (double)r->elapsed_ns : 0;
}

static uint64_t ios(const struct bench_result *r)
{
	return r->latency[BENCH_READ].count + r->latency[BENCH_WRITE].count;
}

static double us_per_op(const struct bench_result *r, uint64_t cpu_us)
{
	return ios(r) ? (double)cpu_us / (double)ios(r) : 0;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void print_head(
	const struct bench_options *o, const struct bench_result *r)
{
	const struct bench_spec *s = &r->spec;
	char bs[16], size[16];

	printf("%s: bs %s, iodepth %u, %u job%s on %u URI%s, %s each, %.2f s",
		s->name, size_format(s->bs, bs), s->iodepth, s->numjobs,
		s->numjobs == 1 ? "" : "s", o->nuris, o->nuris == 1 ? "" : "s",
		size_format(s->size, size), (double)r->elapsed_ns / 1e9);
	if (r->end_flush_ns)
		printf(" with the final flush, %.1f ms", ms(r->end_flush_ns));
	else if (r->latency[BENCH_WRITE].count && !r->interrupted)
		printf(", without a final flush");
	printf("%s\n", r->interrupted ? ", interrupted" : "");
}

static void print_op(const struct bench_result *r, enum bench_op op)
{
	const struct hist *h = &r->latency[op];

	if (!h->count)
		return;
	printf("  %-6s", op_names[op]);
	if (op == BENCH_FLUSH)
		printf(" %9llu flushes ", (unsigned long long)h->count);
	else
		printf(" %9.1f MB/s", per_second(r->bytes[op], r) / 1e6);
	printf(" %9.0f IOPS   ms: p50 %.3f, p99 %.3f, p99.9 %.3f, max %.3f\n",
		per_second(h->count, r), ms(hist_quantile(h, 0.5)),
		ms(hist_quantile(h, 0.99)), ms(hist_quantile(h, 0.999)),
		ms(h->max));
}

static void print_cpu(
	const char *who, const struct bench_result *r, uint64_t cpu_us)
{
	printf("  %s CPU %.2f s, %.0f%% of a core, %.2f us per operation\n",
		who, (double)cpu_us / 1e6,
		r->elapsed_ns ? (double)cpu_us * 1e5 / (double)r->elapsed_ns
			      : 0,
		us_per_op(r, cpu_us));
}

void bench_report_text(
	const struct bench_options *o, const struct bench_result *r)
{
	print_head(o, r);
	for (unsigned op = 0; op < BENCH_OPS; op++)
		print_op(r, op);
	print_cpu("client", r, r->client_cpu_us);
	if (r->have_server_cpu)
		print_cpu("server", r, r->server_cpu_us);
	if (r->spec.verify)
		printf("  verified %llu blocks, %llu wrong\n",
			(unsigned long long)r->verified,
			(unsigned long long)r->corrupt);
	fflush(stdout);
}

void bench_report_table_head(const struct bench_options *o)
{
	printf("%-10s %4s %5s %9s %9s %9s %9s %13s%s\n", "run", "bs", "depth",
		"MB/s", "IOPS", "p50 ms", "p99 ms", "client us/op",
		o->control ? "  server us/op" : "");
}

void bench_report_table_row(const struct bench_result *r)
{
	enum bench_op op = r->spec.read_percent ? BENCH_READ : BENCH_WRITE;
	const struct hist *h = &r->latency[op];
	char bs[16];

	printf("%-10s %4s %5u %9.1f %9.0f %9.3f %9.3f %13.2f", r->spec.name,
		size_format(r->spec.bs, bs), r->spec.iodepth,
		per_second(r->bytes[op], r) / 1e6, per_second(h->count, r),
		ms(hist_quantile(h, 0.5)), ms(hist_quantile(h, 0.99)),
		us_per_op(r, r->client_cpu_us));
	if (r->have_server_cpu)
		printf(" %13.2f", us_per_op(r, r->server_cpu_us));
	putchar('\n');
	fflush(stdout);
}

/* --- JSON ---------------------------------------------------------------- */

static json_t *latency_json(const struct hist *h)
{
	return json_pack("{s:I,s:f,s:I,s:I,s:I,s:I}", "min_ns",
		(json_int_t)h->min, "mean_ns", hist_mean(h), "p50_ns",
		(json_int_t)hist_quantile(h, 0.5), "p99_ns",
		(json_int_t)hist_quantile(h, 0.99), "p99_9_ns",
		(json_int_t)hist_quantile(h, 0.999), "max_ns",
		(json_int_t)h->max);
}

static json_t *op_json(const struct bench_result *r, enum bench_op op)
{
	const struct hist *h = &r->latency[op];

	return json_pack("{s:I,s:I,s:f,s:f,s:o}", "ios", (json_int_t)h->count,
		"bytes", (json_int_t)r->bytes[op], "bytes_per_s",
		per_second(r->bytes[op], r), "iops", per_second(h->count, r),
		"latency", latency_json(h));
}

static json_t *spec_json(const struct bench_spec *s)
{
	json_t *j = json_pack("{s:s,s:I,s:i,s:i,s:I,s:I,s:I}", "rw", s->name,
		"bs_bytes", (json_int_t)s->bs, "iodepth", (int)s->iodepth,
		"numjobs", (int)s->numjobs, "offset_bytes",
		(json_int_t)s->offset, "offset_increment_bytes",
		(json_int_t)s->offset_increment, "size_bytes",
		(json_int_t)s->size);

	json_object_set_new(
		j, "io_size_bytes", json_integer((json_int_t)s->io_size));
	json_object_set_new(j, "runtime_us",
		json_integer((json_int_t)s->runtime_ns / 1000));
	json_object_set_new(j, "time_based", json_boolean(s->time_based));
	json_object_set_new(
		j, "rwmixread", json_integer((json_int_t)s->read_percent));
	json_object_set_new(j, "fsync", json_integer((json_int_t)s->fsync));
	json_object_set_new(j, "end_fsync", json_boolean(s->end_fsync));
	json_object_set_new(
		j, "rate_bytes_per_s", json_integer((json_int_t)s->rate));
	json_object_set_new(j, "seed", json_integer((json_int_t)s->seed));
	json_object_set_new(j, "verify", json_boolean(s->verify));
	return j;
}

json_t *bench_report_json(const struct bench_result *r)
{
	json_t *j = json_pack("{s:o,s:I,s:I,s:b,s:I,s:f}", "options",
		spec_json(&r->spec), "elapsed_us",
		(json_int_t)r->elapsed_ns / 1000, "final_flush_us",
		(json_int_t)r->end_flush_ns / 1000, "interrupted",
		r->interrupted, "client_cpu_us", (json_int_t)r->client_cpu_us,
		"client_cpu_us_per_op", us_per_op(r, r->client_cpu_us));

	if (r->have_server_cpu) {
		json_object_set_new(j, "server_cpu_us",
			json_integer((json_int_t)r->server_cpu_us));
		json_object_set_new(j, "server_cpu_us_per_op",
			json_real(us_per_op(r, r->server_cpu_us)));
	}
	if (r->spec.verify) {
		json_object_set_new(j, "verified_blocks",
			json_integer((json_int_t)r->verified));
		json_object_set_new(j, "corrupt_blocks",
			json_integer((json_int_t)r->corrupt));
	}
	for (enum bench_op op = 0; op < BENCH_OPS; op++)
		json_object_set_new(j, op_names[op], op_json(r, op));
	return j;
}
