/* What the truth server answers and logs: its options, one request, the bytes of frames and tails, the log's lines. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum { OK, HTTP_500, HTTP_429, CUT, STREAM_ERROR, FAULTS };
static const char *const FAULT_NAME[] = {"ok", "http_500", "http_429", "cut", "stream_error"};
static const char *const FAULT_OUTCOME[] = {"ok", "error", "error", "incomplete", "error"};
static const char *const FAULT_ERROR[] = {"null", "\"http_5xx\"", "\"http_429\"", "null", "\"stream_error\""};

static struct {
    const char *name;
    double value;
} options[] = {
    {"ttft_us", 200000}, {"gap_us", 20000}, {"tokens", 64},   {"per_frame", 1}, {"role_us", 0},
    {"aligned", 0},      {"usage", 1},      {"reasoning", 0}, {"slots", 0},     {"frame_bytes", 300},
    {"http_500", 0},     {"http_429", 0},   {"cut", 0},       {"stream_error", 0}, {"after", 10},
    {"seed", 1},         {"port", 0},
};
enum { TTFT, GAP, TOKENS, PER_FRAME, ROLE, ALIGNED, USAGE, REASONING, SLOTS, FRAME_BYTES, F500, F429, FCUT, FERR, AFTER,
       SEED, PORT };
#define OPT(i) (options[i].value)

typedef struct {
    int n, connection, fault, tokens, prompt, blocked, frames, started, ended;
    int chat, stream, usage;
    char client_id[48];
    ns_t arrived, read, start, head, end, left;
    ns_t *write;
    int *count;
} Request;

static Request **all;
static int all_count;

static void *room(void *old, size_t bytes) {
    void *made = realloc(old, bytes);
    if (!made) { perror("memory"); exit(1); }
    return made;
}

/* ---- bytes ---- */
static int frame(char *out, const Request *r, int first, int count) {
    char data[65536], words[16384];
    int w = 0;
    for (int i = 0; i < count && w < 16000; i++) w += sprintf(words + w, "w%05d ", (first + i) % 100000);
    const char *field = r->chat ? (first < OPT(REASONING) ? "reasoning_content" : "content") : "text";
    const char *kind = r->chat ? "chat.completion.chunk" : "text_completion";
    int size = sprintf(data, "data: {\"id\":\"mock-%d\",\"object\":\"%s\",\"created\":1760000000,\"model\":\"mock\",", r->n, kind);
    int rest = r->chat ? 75 : 62, pad = (int)OPT(FRAME_BYTES) - size - rest - w - (int)strlen(field) - 27;
    size += sprintf(data + size, "\"system_fingerprint\":\"%.*s\",", pad > 0 ? pad : 0,
                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    size += sprintf(data + size, r->chat ? "\"choices\":[{\"index\":0,\"delta\":{\"%s\":\"%s\"},\"finish_reason\":null}]}\n\n"
                                         : "\"choices\":[{\"index\":0,\"%s\":\"%s\",\"finish_reason\":null}]}\n\n", field, words);
    return sprintf(out, "%x\r\n%.*s\r\n", size, size, data);
}

static int event(char *out, const char *data) {
    return sprintf(out, "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data);
}

static int tail(char *out, const Request *r) {
    char data[1024];
    int size = 0;
    if (r->fault == STREAM_ERROR) {
        size = event(out, "{\"error\":{\"message\":\"scripted stream_error\",\"type\":\"InternalServerError\",\"code\":500}}");
    } else {
        sprintf(data, "{\"id\":\"mock-%d\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"mock\","
                      "\"choices\":[{\"index\":0,%s,\"finish_reason\":\"length\"}]}", r->n, r->chat ? "\"delta\":{}" : "\"text\":\"\"");
        size = event(out, data);
        if (OPT(USAGE) && r->usage) {
            int thought = r->chat ? (int)OPT(REASONING) : 0;
            sprintf(data, "{\"id\":\"mock-%d\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"mock\","
                          "\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,"
                          "\"completion_tokens_details\":{\"reasoning_tokens\":%d}}}",
                    r->n, r->prompt, r->tokens, r->prompt + r->tokens, thought < r->tokens ? thought : r->tokens);
            size += event(out + size, data);
        }
    }
    size += event(out + size, "[DONE]");
    return size + sprintf(out + size, "0\r\n\r\n");
}

static int whole(char *out, int status, const char *more, const char *body, int n) {
    char named[48] = "";
    if (n) sprintf(named, "x-request-id: mock-%d\r\n", n);
    return sprintf(out, "HTTP/1.1 %d X\r\ncontent-type: application/json\r\n%s%scontent-length: %zu\r\n\r\n%s", status, named,
                   more, strlen(body), body);
}

/* ---- reading a request ---- */
static int words_of(const char *body, int size, const char *key) { /* words in every string value of `key` */
    int words = 0;
    const char *at = body, *end = body + size;
    while ((at = memmem(at, end - at, key, strlen(key)))) {
        int inside = 0;
        for (at += strlen(key); at < end && (*at == ' ' || *at == ':'); at++) {}
        if (at == end || *at != '"') continue;
        for (at++; at < end && *at != '"'; at++) {
            int space = *at == ' ' || (*at == '\\' && at + 1 < end && (at[1] == 'n' || at[1] == 't'));
            if (*at == '\\') at++;
            if (!space && !inside) words++;
            inside = !space;
        }
    }
    return words;
}

static int number_of(const char *body, int size, const char *key, int otherwise) {
    const char *at = memmem(body, size, key, strlen(key));
    if (!at) return otherwise;
    for (at += strlen(key); *at == ' ' || *at == ':'; at++) {}
    return *at >= '0' && *at <= '9' ? atoi(at) : otherwise;
}

static int true_of(const char *body, int size, const char *key) {
    const char *at = memmem(body, size, key, strlen(key));
    if (!at) return 0;
    for (at += strlen(key); *at == ' ' || *at == ':'; at++) {}
    return *at == 't';
}

/* ---- the log ---- */
static void stamp(FILE *f, const char *name, ns_t at) {
    if (at) fprintf(f, "\"%s\":%lld,", name, (long long)at);
    else fprintf(f, "\"%s\":null,", name);
}

static void dump(const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) { perror(path); return; }
    for (int i = 0; i < all_count; i++) {
        Request *r = all[i];
        int tokens = 0;
        fprintf(f, "{\"n\":%d,\"id\":\"mock-%d\",", r->n, r->n);
        if (r->client_id[0]) fprintf(f, "\"client_id\":\"%s\",", r->client_id);
        fprintf(f, "\"connection\":%d,\"path\":\"/v1/%s\",\"status\":%d,", r->connection, r->chat ? "chat/completions" : "completions",
                r->fault == HTTP_500 ? 500 : r->fault == HTTP_429 ? 429 : 200);
        stamp(f, "arrived_ns", r->arrived);
        stamp(f, "read_ns", r->read);
        stamp(f, "start_ns", r->start);
        stamp(f, "head_ns", r->head);
        stamp(f, "end_ns", r->end);
        stamp(f, "left_ns", r->left);
        fputs("\"writes\":[", f);
        for (int k = 0; k < r->frames; k++) {
            fprintf(f, k ? ",[%lld,%d]" : "[%lld,%d]", (long long)r->write[k], r->count[k]);
            tokens += r->count[k];
        }
        fprintf(f, "],\"meant\":\"%s\",\"outcome\":\"%s\",\"error\":%s,\"prompt_tokens\":%d,\"output_tokens\":%d,\"reasoning_tokens\":%d,\"blocked\":%d}\n",
                FAULT_NAME[r->fault], FAULT_OUTCOME[r->fault], FAULT_ERROR[r->fault], r->prompt, tokens,
                r->chat && r->stream ? (tokens < OPT(REASONING) ? tokens : (int)OPT(REASONING)) : 0, r->blocked);
    }
    fclose(f);
}
