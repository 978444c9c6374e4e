/* The truth server of the bench: the C twin of `nilo mock`, for loads at which Python's own lateness would hide the
 * client's. One thread, one epoll, an absolute schedule, writes straight to the socket; the log stays in memory and is
 * written at SIGTERM as the same JSON lines, with one more stamp: `arrived_ns`, when the kernel had the request.
 *
 * usage: truth_server key=value ...    prints its port; keys and defaults: see `options` in truth_answer.h.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "truth_answer.h"

typedef struct {
    int fd, number, used, cap, phase, sent, queued; /* phase: what the next write is */
    char *in;
    ns_t due;
    Request *now;
    int heap_at; /* -1 = not on the heap */
} Conn;
enum { ROLE_FRAME, FRAMES, TAIL };

static int all_cap, accepted, serving;
static Conn **conns;
static int conns_cap;
static Conn **heap;
static int heap_count, heap_cap;
static Conn **line;
static int line_head, line_count, line_cap;
static int epoll_fd, timer_fd;
static volatile sig_atomic_t stopping;

/* ---- a heap of connections by due time ---- */
static void heap_place(int i, Conn *c) { heap[i] = c; c->heap_at = i; }
static void heap_up(int i) {
    Conn *c = heap[i];
    for (; i && heap[(i - 1) / 2]->due > c->due; i = (i - 1) / 2) heap_place(i, heap[(i - 1) / 2]);
    heap_place(i, c);
}
static void heap_down(int i) {
    Conn *c = heap[i];
    for (int k; (k = 2 * i + 1) < heap_count; i = k) {
        if (k + 1 < heap_count && heap[k + 1]->due < heap[k]->due) k++;
        if (heap[k]->due >= c->due) break;
        heap_place(i, heap[k]);
    }
    heap_place(i, c);
}
static void heap_add(Conn *c) {
    if (heap_count == heap_cap) heap = room(heap, (heap_cap = heap_cap ? 2 * heap_cap : 256) * sizeof *heap);
    heap_place(heap_count, c);
    heap_up(heap_count++);
}
static void heap_remove(Conn *c) {
    int i = c->heap_at;
    if (i < 0) return;
    c->heap_at = -1;
    if (i == --heap_count) return;
    heap_place(i, heap[heap_count]);
    heap_up(i);
    heap_down(heap[i]->heap_at);
}

static int put(Conn *c, const char *data, int size) { /* 1 = the kernel took all */
    while (size > 0) {
        ssize_t sent = send(c->fd, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno != EAGAIN) return 0;
        if (sent < 0) { /* a full buffer: the bench's clients read; wait for it and say so in the log */
            if (c->now) c->now->blocked++;
            usleep(50);
            continue;
        }
        data += sent;
        size -= (int)sent;
    }
    return 1;
}

/* ---- the life of a request ---- */
static ns_t on_grid(ns_t at) {
    ns_t gap = (ns_t)(OPT(GAP) * 1000);
    return OPT(ALIGNED) && gap ? (at + gap - 1) / gap * gap : at;
}

static void serve(Conn *c, ns_t start) {
    Request *r = c->now;
    char out[512];
    serving++;
    r->started = 1;
    r->start = start;
    ns_t first = on_grid(start + (ns_t)(OPT(TTFT) * 1000));
    c->sent = 0;
    c->phase = FRAMES;
    c->due = first;
    if (!r->stream) {
        c->phase = TAIL;
        c->due = first + (ns_t)(r->tokens - 1) * (ns_t)(OPT(GAP) * 1000);
    } else if (r->fault != HTTP_500 && r->fault != HTTP_429) {
        r->head = now_ns();
        put(c, out, sprintf(out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nx-request-id: mock-%d\r\n"
                                 "transfer-encoding: chunked\r\n\r\n", r->n));
        if (OPT(ROLE) && r->chat) { c->phase = ROLE_FRAME; c->due = first - (ns_t)(OPT(ROLE) * 1000); }
        if (c->due < start) c->due = start;
    }
    heap_add(c);
}

static void next_in_line(void) {
    while (line_head < line_count && serving < OPT(SLOTS)) {
        Conn *c = line[line_head++];
        if (c && c->queued) { c->queued = 0; serve(c, now_ns()); }
    }
}

static void finish(Conn *c) {
    Request *r = c->now;
    r->ended = 1;
    c->now = NULL;
    if (r->started) serving--;
    if (OPT(SLOTS)) next_in_line();
}

static void drop(Conn *c) {
    heap_remove(c);
    c->queued = 0;
    for (int i = line_head; i < line_count; i++) if (line[i] == c) line[i] = NULL;
    if (c->now) { if (!c->now->end) c->now->left = now_ns(); finish(c); }
    conns[c->fd] = NULL;
    close(c->fd);
    free(c->in);
    free(c);
}

static void answer_whole(Conn *c, Request *r) {
    char out[66000], body[65536];
    int status = 200, w = 0;
    const char *more = "";
    if (r->fault == HTTP_500 || r->fault == HTTP_429) {
        status = r->fault == HTTP_500 ? 500 : 429;
        if (status == 429) more = "retry-after: 2\r\n";
        sprintf(body, "{\"error\":{\"message\":\"scripted\",\"code\":%d}}", status);
    } else {
        static char words[40000];
        for (int i = 0; i < r->tokens && w < 39000; i++) w += sprintf(words + w, "w%05d ", i);
        sprintf(body, "{\"id\":\"mock-%d\",\"model\":\"mock\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"%s\"},"
                      "\"text\":\"\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}",
                r->n, words, r->prompt, r->tokens, r->prompt + r->tokens);
    }
    r->end = now_ns();
    if (status == 200) { r->write[0] = r->end; r->count[0] = r->tokens; r->frames = 1; }
    put(c, out, whole(out, status, more, body, r->n));
    finish(c);
}

static void write_due(Conn *c) { /* the connection is off the heap */
    char out[70000];
    Request *r = c->now;
    if (!r->stream || r->fault == HTTP_500 || r->fault == HTTP_429) { answer_whole(c, r); return; }
    ns_t gap = (ns_t)(OPT(GAP) * 1000);
    if (c->phase == ROLE_FRAME) {
        char data[256];
        sprintf(data, "{\"id\":\"mock-%d\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"mock\",\"choices\":"
                      "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}", r->n);
        put(c, out, event(out, data));
        c->phase = FRAMES;
        c->due = on_grid(r->start + (ns_t)(OPT(TTFT) * 1000));
        heap_add(c);
        return;
    }
    int stop = r->fault == CUT || r->fault == STREAM_ERROR ? (int)OPT(AFTER) : r->tokens;
    if (stop > r->tokens) stop = r->tokens;
    if (c->phase == FRAMES && c->sent < stop) {
        int border = r->chat && c->sent < OPT(REASONING) ? (int)OPT(REASONING) : stop, count = (int)OPT(PER_FRAME);
        if (count > border - c->sent) count = border - c->sent;
        if (count > stop - c->sent) count = stop - c->sent;
        int size = frame(out, r, c->sent, count);
        r->write[r->frames] = now_ns();
        put(c, out, size);
        r->count[r->frames++] = count;
        c->sent += count;
        if (c->sent < stop || r->fault == CUT) { c->due += count * gap; heap_add(c); return; }
    }
    if (r->fault == CUT) { r->end = now_ns(); drop(c); return; }
    int size = tail(out, r);
    r->end = now_ns();
    put(c, out, size);
    finish(c);
}

/* ---- reading ---- */
static double draw(int n) { /* splitmix64: the same seed and order, the same faults */
    uint64_t z = ((uint64_t)OPT(SEED) << 32) + (uint64_t)n * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static int draw_fault(int n) {
    double left = draw(n);
    for (int i = 0; i < 4; i++) if ((left -= OPT(F500 + i)) < 0) return HTTP_500 + i;
    return OK;
}

static void generate(Conn *c, const char *head, const char *body, int size, ns_t arrived, ns_t read) {
    Request *r = calloc(1, sizeof *r);
    if (all_count == all_cap) all = room(all, (all_cap = all_cap ? 2 * all_cap : 4096) * sizeof *all);
    all[all_count++] = r;
    r->n = all_count;
    r->connection = c->number;
    r->arrived = arrived;
    r->read = read;
    r->chat = !memcmp(head, "POST /v1/chat", 13);
    r->stream = true_of(body, size, "\"stream\"");
    r->usage = true_of(body, size, "\"include_usage\"");
    r->tokens = number_of(body, size, "\"max_completion_tokens\"", number_of(body, size, "\"max_tokens\"", (int)OPT(TOKENS)));
    r->prompt = r->chat ? words_of(body, size, "\"content\"") + 5 : words_of(body, size, "\"prompt\"");
    r->fault = draw_fault(r->n);
    const char *id = strcasestr(head, "\r\nx-request-id:");
    if (id && id < body) sscanf(id + 15, " %47[A-Za-z0-9_.-]", r->client_id);
    r->write = room(NULL, (r->tokens + 1) * sizeof *r->write);
    r->count = room(NULL, (r->tokens + 1) * sizeof *r->count);
    c->now = r;
    if (OPT(SLOTS) && serving >= OPT(SLOTS)) {
        if (line_count == line_cap) line = room(line, (line_cap = line_cap ? 2 * line_cap : 4096) * sizeof *line);
        line[line_count++] = c;
        c->queued = 1;
    } else serve(c, read);
}

static void probe(Conn *c, const char *head, const char *body, int size) {
    static char out[400000], told[390000];
    int status = 200;
    if (!memcmp(head, "GET /v1/models", 14)) strcpy(told, "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\"}]}");
    else if (!memcmp(head, "GET /health", 11)) strcpy(told, "{\"status\":\"ok\"}");
    else if (!memcmp(head, "POST /tokenize", 14)) {
        int w = sprintf(told, "{\"tokens\":["), words = words_of(body, size, "\"content\"");
        for (int i = 0; i < words && w < 380000; i++) w += sprintf(told + w, i ? ",%d" : "%d", i);
        sprintf(told + w, "]}");
    } else { status = 404; strcpy(told, "{\"error\":{\"message\":\"not here\",\"code\":404}}"); }
    put(c, out, whole(out, status, "", told, 0));
}

static void readable(Conn *c) {
    char control[128];
    if (c->cap - c->used < 65536) c->in = room(c->in, (c->cap = c->cap ? 2 * c->cap : 131072) + 1);
    struct iovec io = {c->in + c->used, (size_t)(c->cap - c->used)};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(c->fd, &m, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) { drop(c); return; }
    ns_t read = now_ns(), arrived = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(h), sizeof t);
            arrived = t.tv_sec * 1000000000LL + t.tv_nsec - wall_offset;
        }
    c->used += (int)got;
    c->in[c->used] = 0;
    char *end = memmem(c->in, c->used, "\r\n\r\n", 4);
    if (!end || c->now) return;
    const char *length = strcasestr(c->in, "\r\ncontent-length:");
    int size = length && length < end ? atoi(length + 17) : 0;
    char *body = end + 4;
    if (c->in + c->used - body < size) return;
    c->used = 0; /* one request at a time: the bench's clients do not pipeline */
    if (!memcmp(c->in, "POST /v1/chat/completions", 25) || !memcmp(c->in, "POST /v1/completions", 20))
        generate(c, c->in, body, size, arrived, read);
    else probe(c, c->in, body, size);
}

static void accept_all(int listener) {
    for (;;) {
        int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0) return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
        if (fd >= conns_cap) {
            int before = conns_cap;
            conns = room(conns, (conns_cap = fd + 1024) * sizeof *conns);
            memset(conns + before, 0, (conns_cap - before) * sizeof *conns);
        }
        Conn *c = calloc(1, sizeof *c);
        c->fd = fd;
        c->number = ++accepted;
        c->heap_at = -1;
        conns[fd] = c;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
    }
}

static void on_signal(int number) { (void)number; stopping = 1; }

static void set_timer(void) {
    static ns_t set_to;
    ns_t due = heap_count ? heap[0]->due : 0;
    if (due == set_to) return;
    set_to = due;
    struct itimerspec at = {.it_value = {due / 1000000000LL, due % 1000000000LL}};
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

int main(int argc, char **argv) {
    const char *truth = NULL;
    for (int i = 1; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        int known = 0;
        if (eq && !strncmp(argv[i], "truth=", 6)) { truth = eq + 1; known = 1; }
        for (size_t k = 0; eq && k < sizeof options / sizeof *options; k++)
            if (strlen(options[k].name) == (size_t)(eq - argv[i]) && !strncmp(argv[i], options[k].name, eq - argv[i])) {
                options[k].value = atof(eq + 1);
                known = 1;
            }
        if (!known) { fprintf(stderr, "unknown option %s\n", argv[i]); return 2; }
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)OPT(PORT)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 4096)) { perror("listen"); return 1; }
    getsockname(listener, (struct sockaddr *)&at, &size);
    epoll_fd = epoll_create1(0);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, t = {.events = EPOLLIN, .data.fd = timer_fd};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &e);
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &t);
    sample_wall();
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    static struct epoll_event events[2048];
    while (!stopping) {
        set_timer();
        int ready = epoll_wait(epoll_fd, events, 2048, -1);
        if (!all_count || now_ns() - wall_sampled > 1000000000LL) sample_wall();
        for (int i = 0; i < ready; i++) {
            uint64_t rings;
            int fd = events[i].data.fd;
            if (fd == listener) accept_all(listener);
            else if (fd == timer_fd) { if (read(timer_fd, &rings, 8) < 0) {} }
            else if (fd < conns_cap && conns[fd]) readable(conns[fd]);
        }
        ns_t until = now_ns();
        while (heap_count && heap[0]->due <= until) {
            Conn *c = heap[0];
            heap_remove(c);
            write_due(c);
        }
    }
    if (truth) dump(truth);
    return 0;
}
