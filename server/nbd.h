/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd.h: the numbers of the NBD protocol, and bytes in and out of it.
 *
 * Names follow the protocol document. Everything on the wire is big-endian
 * and unaligned: nothing is read through a struct.
 */
#ifndef WEIR_SERVER_NBD_H
#define WEIR_SERVER_NBD_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* --- handshake ------------------------------------------------------------ */

#define NBD_MAGIC UINT64_C(0x4e42444d41474943)     /* "NBDMAGIC" */
#define NBD_OPT_MAGIC UINT64_C(0x49484156454f5054) /* "IHAVEOPT" */
#define NBD_REP_MAGIC UINT64_C(0x0003e889045565a9)

#define NBD_FLAG_FIXED_NEWSTYLE 1U
#define NBD_FLAG_NO_ZEROES 2U

#define NBD_MAX_STRING 4096U

enum nbd_opt {
	NBD_OPT_EXPORT_NAME = 1,
	NBD_OPT_ABORT = 2,
	NBD_OPT_LIST = 3,
	NBD_OPT_STARTTLS = 5,
	NBD_OPT_INFO = 6,
	NBD_OPT_GO = 7,
	NBD_OPT_STRUCTURED_REPLY = 8,
	NBD_OPT_LIST_META_CONTEXT = 9,
	NBD_OPT_SET_META_CONTEXT = 10,
	NBD_OPT_EXTENDED_HEADERS = 11,
};

#define NBD_REP_ACK 1U
#define NBD_REP_SERVER 2U
#define NBD_REP_INFO 3U
#define NBD_REP_META_CONTEXT 4U
#define NBD_REP_ERR_UNSUP 0x80000001U
#define NBD_REP_ERR_POLICY 0x80000002U
#define NBD_REP_ERR_INVALID 0x80000003U
#define NBD_REP_ERR_TLS_REQD 0x80000005U
#define NBD_REP_ERR_UNKNOWN 0x80000006U
#define NBD_REP_ERR_SHUTDOWN 0x80000007U
#define NBD_REP_ERR_TOO_BIG 0x80000009U
#define NBD_REP_ERR_EXT_HEADER_REQD 0x8000000aU

enum nbd_info {
	NBD_INFO_EXPORT = 0,
	NBD_INFO_NAME = 1,
	NBD_INFO_DESCRIPTION = 2,
	NBD_INFO_BLOCK_SIZE = 3,
};

/* --- transmission --------------------------------------------------------- */

#define NBD_FLAG_HAS_FLAGS 0x0001U
#define NBD_FLAG_READ_ONLY 0x0002U
#define NBD_FLAG_SEND_FLUSH 0x0004U
#define NBD_FLAG_SEND_FUA 0x0008U
#define NBD_FLAG_SEND_TRIM 0x0020U
#define NBD_FLAG_SEND_WRITE_ZEROES 0x0040U
#define NBD_FLAG_SEND_DF 0x0080U
#define NBD_FLAG_CAN_MULTI_CONN 0x0100U
#define NBD_FLAG_SEND_CACHE 0x0400U
#define NBD_FLAG_SEND_FAST_ZERO 0x0800U

#define NBD_REQUEST_MAGIC 0x25609513U
#define NBD_SIMPLE_REPLY_MAGIC 0x67446698U
#define NBD_STRUCTURED_REPLY_MAGIC 0x668e33efU

#define NBD_EXTENDED_REQUEST_MAGIC 0x21e41c71U
#define NBD_EXTENDED_REPLY_MAGIC 0x6e8a278cU

#define NBD_REQUEST_SIZE 28U
#define NBD_EXTENDED_REQUEST_SIZE 32U
#define NBD_SIMPLE_REPLY_SIZE 16U
#define NBD_CHUNK_SIZE 20U
#define NBD_EXTENDED_CHUNK_SIZE 32U

enum nbd_cmd {
	NBD_CMD_READ = 0,
	NBD_CMD_WRITE = 1,
	NBD_CMD_DISC = 2,
	NBD_CMD_FLUSH = 3,
	NBD_CMD_TRIM = 4,
	NBD_CMD_CACHE = 5,
	NBD_CMD_WRITE_ZEROES = 6,
	NBD_CMD_BLOCK_STATUS = 7,
};

/* The ids this server gives to base:allocation and x-weir:cache. */
#define NBD_CONTEXT_ALLOCATION 1U
#define NBD_CONTEXT_CACHE 2U
#define NBD_CONTEXTS 2U

#define NBD_CMD_FLAG_FUA 0x01U
#define NBD_CMD_FLAG_NO_HOLE 0x02U
#define NBD_CMD_FLAG_DF 0x04U
#define NBD_CMD_FLAG_REQ_ONE 0x08U
#define NBD_CMD_FLAG_FAST_ZERO 0x10U
#define NBD_CMD_FLAG_PAYLOAD_LEN 0x20U

#define NBD_REPLY_FLAG_DONE 1U

#define NBD_REPLY_TYPE_NONE 0U
#define NBD_REPLY_TYPE_OFFSET_DATA 1U
#define NBD_REPLY_TYPE_OFFSET_HOLE 2U
#define NBD_REPLY_TYPE_BLOCK_STATUS 5U
#define NBD_REPLY_TYPE_BLOCK_STATUS_EXT 6U
#define NBD_REPLY_TYPE_ERROR 0x8001U
#define NBD_REPLY_TYPE_ERROR_OFFSET 0x8002U

#define NBD_EPERM 1U
#define NBD_EIO 5U
#define NBD_ENOMEM 12U
#define NBD_EINVAL 22U
#define NBD_ENOSPC 28U
#define NBD_EOVERFLOW 75U
#define NBD_ENOTSUP 95U
#define NBD_ESHUTDOWN 108U

/* --- bytes ---------------------------------------------------------------- */

static inline uint16_t nbd_get16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t nbd_get32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t nbd_get64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

/* The put functions return where the next field goes. */
static inline unsigned char *nbd_put16(unsigned char *p, uint16_t v)
{
	v = htobe16(v);
	return (unsigned char *)memcpy(p, &v, sizeof(v)) + sizeof(v);
}

static inline unsigned char *nbd_put32(unsigned char *p, uint32_t v)
{
	v = htobe32(v);
	return (unsigned char *)memcpy(p, &v, sizeof(v)) + sizeof(v);
}

static inline unsigned char *nbd_put64(unsigned char *p, uint64_t v)
{
	v = htobe64(v);
	return (unsigned char *)memcpy(p, &v, sizeof(v)) + sizeof(v);
}

#endif
