/* The floor of the bench: a closed loop that only reads, stamps and refills. It decodes nothing; what it cannot do
 * better, no client in Python can.
 *
 * usage: drain_client PORT STREAMS REQUESTS TOKENS SPREAD_US OUT
 * Writes OUT as JSON lines, one a request, ns of CLOCK_MONOTONIC:
 * {"id","connection","sent_ns","end_ns","status","complete","frames":[[kernel_ns|null,user_ns,events in that read],...]}
 * and prints one JSON line: {"events","reads","cpu_ns","first_sent_ns","last_end_ns"}.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"

typedef struct {
    char id[48];
    int connection, status, complete, frames;
    ns_t sent, end;
    ns_t *kernel, *user;
    int *events;
} Request;

typedef struct {
    int fd, number, request, tail_used;
    char tail[8];
} Conn;

static int port, streams, total, tokens;
static Request *requests;
static int started, ended;
static long events_seen, reads_seen;
static char ask[512];
static int ask_size;

static void fail(const char *what) { perror(what); exit(1); }

static void open_socket(Conn *c) {
    int one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&at, sizeof at)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
}

static void start(Conn *c) {
    if (started >= total) { c->request = -1; return; }
    Request *r = &requests[c->request = started++];
    r->connection = c->number;
    r->kernel = malloc((size_t)(tokens + 8) * sizeof *r->kernel);
    r->user = malloc((size_t)(tokens + 8) * sizeof *r->user);
    r->events = malloc((size_t)(tokens + 8) * sizeof *r->events);
    c->tail_used = 0;
    r->sent = now_ns();
    if (send(c->fd, ask, (size_t)ask_size, MSG_NOSIGNAL) != ask_size) fail("send");
}

static int matter(const char *data, size_t size) { /* events with a non-empty text in this read */
    int found = 0;
    const char *end = data + size;
    while ((data = memmem(data, end - data, "content\":\"", 10))) {
        data += 10;
        if (data < end && *data != '"') found++;
    }
    return found;
}

static int ends(Conn *c, const char *data, size_t size) { /* whether the body's last chunk is complete */
    size_t keep = size < 7 ? size : 7;
    if (keep < 7 && c->tail_used) {
        size_t old = (size_t)c->tail_used + keep > 7 ? 7 - keep : (size_t)c->tail_used;
        memmove(c->tail, c->tail + c->tail_used - old, old);
        memcpy(c->tail + old, data + size - keep, keep);
        c->tail_used = (int)(old + keep);
    } else {
        memcpy(c->tail, data + size - keep, keep);
        c->tail_used = (int)keep;
    }
    return c->tail_used >= 7 && !memcmp(c->tail, "\r\n0\r\n\r\n", 7);
}

static void finish(Conn *c, Request *r, ns_t at, int complete) {
    r->end = at;
    r->complete = complete;
    ended++;
    start(c); /* refill first */
}

static void readable(Conn *c, int epoll_fd) {
    static char data[65536];
    char control[128];
    struct iovec io = {data, sizeof data};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(c->fd, &m, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    ns_t user = now_ns(), kernel = 0;
    if (c->request < 0) { if (got <= 0) close(c->fd); return; }
    Request *r = &requests[c->request];
    if (got <= 0) { /* the server cut the stream */
        close(c->fd);
        open_socket(c);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
        finish(c, r, user, 0);
        return;
    }
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(h), sizeof t);
            kernel = t.tv_sec * 1000000000LL + t.tv_nsec - wall_offset;
        }
    if (!r->status) {
        const char *id = memmem(data, (size_t)got, "x-request-id: ", 14);
        r->status = got > 12 ? atoi(data + 9) : -1;
        if (id) sscanf(id + 14, "%47[A-Za-z0-9_.-]", r->id);
    }
    int found = matter(data, (size_t)got);
    if (found && r->frames < tokens + 8) {
        r->kernel[r->frames] = kernel;
        r->user[r->frames] = user;
        r->events[r->frames++] = found;
        events_seen += found;
        reads_seen++;
    }
    int whole = r->status != 200; /* a refusal: small, with its length, in one read */
    if (whole || ends(c, data, (size_t)got)) finish(c, r, kernel ? kernel : user, !whole);
}

static void dump(const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) fail(path);
    for (int i = 0; i < started; i++) {
        Request *r = &requests[i];
        fprintf(f, "{\"id\":\"%s\",\"connection\":%d,\"status\":%d,\"complete\":%s,\"sent_ns\":%lld,\"end_ns\":%lld,\"frames\":[", r->id,
                r->connection, r->status, r->complete ? "true" : "false", (long long)r->sent, (long long)r->end);
        for (int k = 0; k < r->frames; k++) {
            if (r->kernel[k]) fprintf(f, "%s[%lld,", k ? "," : "", (long long)r->kernel[k]);
            else fprintf(f, "%s[null,", k ? "," : "");
            fprintf(f, "%lld,%d]", (long long)r->user[k], r->events[k]);
        }
        fputs("]}\n", f);
    }
    fclose(f);
}

int main(int argc, char **argv) {
    if (argc != 7) { fprintf(stderr, "usage: drain_client PORT STREAMS REQUESTS TOKENS SPREAD_US OUT\n"); return 2; }
    port = atoi(argv[1]);
    streams = atoi(argv[2]);
    total = atoi(argv[3]);
    tokens = atoi(argv[4]);
    ns_t spread = atoll(argv[5]) * 1000;
    prctl(PR_SET_TIMERSLACK, 1UL);
    requests = calloc((size_t)total, sizeof *requests);
    char body[256];
    int size = sprintf(body, "{\"model\":\"mock\",\"messages\":[{\"role\":\"user\",\"content\":\"how high is the river\"}],"
                             "\"max_tokens\":%d,\"stream\":true,\"stream_options\":{\"include_usage\":true}}", tokens);
    ask_size = sprintf(ask, "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n"
                            "content-length: %d\r\n\r\n%s", port, size, body);
    Conn *conns = calloc((size_t)streams, sizeof *conns);
    int epoll_fd = epoll_create1(0), timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    for (int i = 0; i < streams; i++) {
        conns[i].number = i + 1;
        conns[i].request = -1;
        open_socket(&conns[i]);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, conns[i].fd, &e);
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &e);
    sample_wall();
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    ns_t first = now_ns();
    int opened = 0;
    static struct epoll_event ready[2048];
    while (ended < total) {
        while (opened < streams && now_ns() >= first + spread * opened / streams) start(&conns[opened++]);
        if (opened < streams) {
            ns_t due = first + spread * opened / streams;
            struct itimerspec at = {.it_value = {due / 1000000000LL, due % 1000000000LL}};
            timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
        }
        int count = epoll_wait(epoll_fd, ready, 2048, -1);
        if (now_ns() - wall_sampled > 1000000000LL) sample_wall();
        for (int i = 0; i < count; i++) {
            uint64_t rings;
            if (ready[i].data.ptr) readable(ready[i].data.ptr, epoll_fd);
            else if (read(timer_fd, &rings, 8) < 0) {}
        }
    }
    getrusage(RUSAGE_SELF, &after);
    ns_t last = now_ns();
    long long cpu = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000000LL +
                    (after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec) * 1000LL;
    dump(argv[6]);
    printf("{\"events\":%ld,\"reads\":%ld,\"cpu_ns\":%lld,\"first_sent_ns\":%lld,\"last_end_ns\":%lld}\n", events_seen, reads_seen, cpu,
           (long long)first, (long long)last);
    return 0;
}
