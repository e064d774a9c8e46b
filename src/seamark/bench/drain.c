/* The inner loop of the load client, compiled where there is a C compiler: wait, read, note the newest seq.
 *
 * Connections whose seen[fd] is not negative are served here; the others are handed back to Python. The same work in
 * Python is swarm.Swarm.turn with wire.last_seq, which runs where this cannot be compiled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

enum { EVENTS = 256, STAMP_DIGITS = 19 };
enum { DELIVERED, BYTES, READS, CLOSED, LATE };

static int64_t number_at(const char *at, const char *end, char stop) {
    int64_t value = 0;
    const char *from = at;
    while (at < end && *at >= '0' && *at <= '9')
        value = value * 10 + (*at++ - '0');
    return at < end && at > from && *at == stop ? value : -1;
}

/* Where an event names its seq, and what ends the number; those before the payload first. */
static const struct { const char *text; long bytes; char stop; } marks[] = {
    {"id: ", 4, '@'}, {"\"seq\":", 6, ','}, {"\"$seq\":", 7, ','}, {"\"to_seq\":", 9, ','},
};

/* The newest seq named in a read, or -1. Each event names its seq twice, so no cut can hide it. */
static int64_t last_seq(const char *from, const char *end, const char **where) {
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (const char *at = end - marks[i].bytes; at >= from; at--)
            if (*at == *marks[i].text && memcmp(at, marks[i].text, (size_t)marks[i].bytes) == 0) {
                int64_t value = number_at(at + marks[i].bytes, end, marks[i].stop);
                *where = at;
                if (value >= 0)
                    return value;
            }
    return -1;
}

/* How long ago the event at `at` was sent, or -1 when its stamp is not in this read. */
static int64_t latency(const char *at, const char *end) {
    static const char mark[] = "\"t\":\"";
    const char *found = memmem(at, (size_t)(end - at), mark, sizeof mark - 1);
    struct timespec now;
    if (found == NULL || end - found < (long)(sizeof mark + STAMP_DIGITS))
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t stamp = number_at(found + sizeof mark - 1, end, '"');
    return stamp < 0 ? -1 : (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - stamp;
}

/* One wait. Fills `others` with fd and mask of what Python must serve; how many those are, or -1. With `timing`, adds the
 * latency of the newest event of each read to `late`, which has room for one per connection of this wait. */
int turn(int epoll_fd, int timeout_ms, int64_t *seen, int64_t *totals, char *buffer, int buffer_bytes, int32_t *others,
         int64_t *late, int timing) {
    struct epoll_event ready[EVENTS];
    int count = epoll_wait(epoll_fd, ready, EVENTS, timeout_ms);
    int handed = 0;
    if (count < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < count; i++) {
        int fd = ready[i].data.fd;
        if (seen[fd] < 0) {
            others[2 * handed] = fd;
            others[2 * handed + 1] = (int32_t)ready[i].events;
            handed++;
            continue;
        }
        ssize_t got = recv(fd, buffer, (size_t)buffer_bytes, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        totals[READS]++;
        if (got <= 0) {
            totals[CLOSED]++;
            seen[fd] = -1;
            continue;
        }
        totals[BYTES] += got;
        const char *where = buffer;
        int64_t seq = last_seq(buffer, buffer + got, &where);
        if (seq > seen[fd]) {
            int64_t took = timing ? latency(where, buffer + got) : -1;
            if (took >= 0)
                late[totals[LATE]++] = took;
            totals[DELIVERED] += seq - seen[fd];
            seen[fd] = seq;
        }
    }
    return handed;
}
