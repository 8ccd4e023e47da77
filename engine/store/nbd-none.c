/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-none.c: the remote stores of a weir that was built without libnbd: their
 * names are known, and one line says why they are not there.
 */
#include <errno.h>

#include "kind.h"

static int none_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	(void)args;
	(void)out;
	return error_set(error, -ENOTSUP,
		"this weir was built without libnbd, which remote stores need");
}

const struct store_kind store_kind_exec = {"exec", .open = none_open};
const struct store_kind store_kind_nbd = {"nbd", .open = none_open};
const struct store_kind store_kind_nbd_unix = {"nbd+unix", .open = none_open};
const struct store_kind store_kind_nbd_vsock = {"nbd+vsock", .open = none_open};
const struct store_kind store_kind_nbds = {"nbds", .open = none_open};
const struct store_kind store_kind_nbds_unix = {"nbds+unix", .open = none_open};
const struct store_kind store_kind_nbds_vsock = {
	"nbds+vsock", .open = none_open};
