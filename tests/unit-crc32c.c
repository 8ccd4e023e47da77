/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-crc32c.c: the checksums that RFC 3720, appendix B.4, gives, each way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/random.h"

static void assert_crc(const void *data, size_t length, uint32_t want)
{
	assert_int_equal(crc32c(0, data, length), want);
	assert_int_equal(crc32c_by_table(0, data, length), want);
}

static void known_answers(void **state)
{
	unsigned char data[32];

	(void)state;
	assert_crc("", 0, 0);
	assert_crc("123456789", 9, 0xe3069283);
	memset(data, 0, sizeof(data));
	assert_crc(data, sizeof(data), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	assert_crc(data, sizeof(data), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)i;
	assert_crc(data, sizeof(data), 0x46dd794e);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(31 - i);
	assert_crc(data, sizeof(data), 0x113fdb5c);
}

static void iscsi_read_command(void **state)
{
	static const unsigned char pdu[48] = {
		0x01,
		0xc0,
		[16] = 0x14,
		[22] = 0x04,
		[27] = 0x14,
		[31] = 0x18,
		[32] = 0x28,
		[40] = 0x02,
	};

	(void)state;
	assert_crc(pdu, sizeof(pdu), 0xd9963a56);
}

static void pieces_at_any_place_make_the_whole(void **state)
{
	uint64_t seed = 1;
	unsigned char data[200];

	(void)state;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)random_next(&seed);
	for (unsigned cut = 0; cut <= sizeof(data); cut++) {
		uint32_t head = crc32c(0, data, cut);
		uint32_t tail = crc32c(head, data + cut, sizeof(data) - cut);

		assert_crc(data, cut, head);
		assert_crc(data, sizeof(data), tail);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(iscsi_read_command),
		cmocka_unit_test(pieces_at_any_place_make_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
