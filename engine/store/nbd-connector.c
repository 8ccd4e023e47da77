/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-connector.c: the thread that opens links, since that blocks: names are
 * resolved, hands shaken, commands started.
 *
 * It is not one of the loop's helper threads: a store may be closed while it
 * connects, and has to know then that nobody will come back to it; and a
 * command that it started is to end when the thread does (exec-child.c), so
 * it lives as long as the store.
 */
#include <errno.h>

#include "../base/cleanup.h"
#include "nbd.h"

static struct remote *remote_of_connector(struct connector *c)
{
	return container_of(c, struct remote, connector);
}

/* Is it still the disk it was? */
static int check_same(
	struct remote *r, const struct remote_caps *now, struct error *error)
{
	const struct store_info *was = &r->base.info;

	if (now->size != was->size)
		return error_set(error, -EINVAL,
			"refused: its size was %llu bytes and is %llu now",
			(unsigned long long)was->size,
			(unsigned long long)now->size);
	if (now->readonly && !was->readonly)
		return error_set(error, -EROFS, "refused: it is read only now");
	if (now->min > was->align)
		return error_set(error, -EINVAL,
			"refused: its blocks were %u bytes and are %u now",
			was->align, now->min);
	return 0;
}

/* One link, or why there is none. */
static void connector_work(struct remote *r)
{
	struct connector *c = &r->connector;
	struct remote_link link;
	struct error error = {""};

	if (!link_open(r, &c->quit, &link, &error) &&
		check_same(r, &link.caps, &error))
		link_close(&link);

	SCOPED_LOCK(&c->lock);

	c->link = link;
	c->error = error;
	c->answered = true;
	ev_async_send(c->loop, &c->ready);
}

static void *connector_run(void *arg)
{
	struct remote *r = arg;
	struct connector *c = &r->connector;

	pthread_mutex_lock(&c->lock);
	while (!atomic_load(&c->quit)) {
		if (!c->wanted) {
			pthread_cond_wait(&c->wake, &c->lock);
			continue;
		}
		c->wanted = false;
		pthread_mutex_unlock(&c->lock);
		connector_work(r);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void connector_ready(struct ev_loop *loop, ev_async *w, int events)
{
	struct connector *c = w->data;

	(void)loop;
	(void)events;
	remote_connected(remote_of_connector(c));
}

static int connector_thread(struct remote *r)
{
	SCOPED_NO_SIGNALS;

	return pthread_create(&r->connector.thread, NULL, connector_run, r);
}

/* On the home loop. */
static int connector_start(struct remote *r)
{
	struct connector *c = &r->connector;

	c->loop = reactor_ev_loop(atomic_load(&r->home));
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	if (connector_thread(r)) {
		pthread_cond_destroy(&c->wake);
		pthread_mutex_destroy(&c->lock);
		return -EAGAIN;
	}
	ev_async_init(&c->ready, connector_ready);
	c->ready.data = c;
	ev_async_start(c->loop, &c->ready);
	c->started = true;
	return 0;
}

int connector_ask(struct remote *r)
{
	struct connector *c = &r->connector;

	if (!c->started && connector_start(r))
		return -EAGAIN;

	SCOPED_LOCK(&c->lock);

	c->wanted = true;
	c->answered = false;
	pthread_cond_signal(&c->wake);
	return 0;
}

void connector_unwatch(struct remote *r)
{
	if (r->connector.started)
		ev_async_stop(r->connector.loop, &r->connector.ready);
}

void connector_stop(struct remote *r)
{
	struct connector *c = &r->connector;

	if (!c->started)
		return;
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->quit, true);
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	link_close(&c->link);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
}
