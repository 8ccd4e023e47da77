/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h: intrusive doubly linked lists.
 *
 * A list head and a node have the same type; an empty head points at itself.
 * Nothing here allocates or locks: the owner of the head serialises.
 */
#ifndef WEIR_BASE_LIST_H
#define WEIR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

#define LIST_INIT(head)                                                        \
	{                                                                      \
		&(head), &(head)                                               \
	}

#define container_of(ptr, type, member)                                        \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define list_entry(ptr, type, member) container_of(ptr, type, member)

/* Walk the nodes; the body must not remove the node it stands on. */
#define list_for_each(node, head)                                              \
	for (struct list *node = (head)->next; node != (head);                 \
		node = node->next)

/* Walk the nodes; the body may remove or free the node it stands on. */
#define list_for_each_safe(node, head)                                         \
	for (struct list *node = (head)->next, *node##_next = node->next;      \
		node != (head); node = node##_next, node##_next = node->next)

static inline void list_init(struct list *head)
{
	head->prev = head;
	head->next = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_insert(struct list *node, struct list *prev)
{
	node->prev = prev;
	node->next = prev->next;
	prev->next->prev = node;
	prev->next = node;
}

static inline void list_push_head(struct list *head, struct list *node)
{
	list_insert(node, head);
}

static inline void list_push_tail(struct list *head, struct list *node)
{
	list_insert(node, head->prev);
}

/* Take a node out and leave it pointing at itself: removing twice is safe. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Take the first node out; NULL if there is none. */
static inline struct list *list_pop_head(struct list *head)
{
	struct list *node = head->next;

	if (node == head)
		return NULL;
	list_remove(node);
	return node;
}

/* Move all nodes of `from` to the tail of `to`; `from` ends empty. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	from->prev->next = to;
	to->prev->next = from->next;
	to->prev = from->prev;
	list_init(from);
}

#endif
