/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stripe.h: "stripe:CHUNK,[A],[B],...", RAID-0 over stores.
 *
 *   device   | chunk 0 | chunk 1 | chunk 2 | chunk 3 | ...
 *   member       0         1         0         1         of two
 *
 * CHUNK is a power of two from 4K to 1G. Each member gives as much as the
 * smallest has, in whole chunks. What one of them cannot do the stripe cannot.
 */
#ifndef WEIR_STORE_STRIPE_H
#define WEIR_STORE_STRIPE_H

#include "store.h"

#define STRIPE_MAX 16U
#define STRIPE_CHUNK_MIN 4096U
#define STRIPE_CHUNK_MAX (1U << 30)

#endif
