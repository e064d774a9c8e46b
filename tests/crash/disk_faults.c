/* A disk that fails when it is told to, for LD_PRELOAD. The file named by DISK_FAULTS says how: "MODE ERRNO".
 *
 *   sync   fdatasync, fsync and msync fail
 *   write  data pages cannot be written
 *   meta   the header cannot be written, nor put back
 *   late   the header is written, and then its sync fails; LMDB puts the old one back
 *   stuck  the same, but the old one cannot be put back: the file shows a transaction that nobody knows to be durable
 *
 * Only calls on the store's own file are touched. Without the file, or with an empty one, nothing fails. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define PAGE 4096

static const char *const STORE = "/data.mdb";
static __thread int wanted;

static int is_store(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    size_t tail = strlen(STORE);
    if (length < (ssize_t)tail) return 0;
    return memcmp(path + length - tail, STORE, tail) == 0;
}

/* Whether the disk is in this mode; `wanted` is then the error to report. */
static int mode_is(const char *mode) {
    const char *control = getenv("DISK_FAULTS");
    char said[64] = "", name[16] = "";
    int fd = control ? open(control, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return 0;
    ssize_t length = read(fd, said, sizeof said - 1);
    close(fd);
    return length > 0 && sscanf(said, "%15s %d", name, &wanted) == 2 && strcmp(name, mode) == 0;
}

static ssize_t failed(void) {
    errno = wanted;
    return -1;
}

int fdatasync(int fd) {
    return is_store(fd) && mode_is("sync") ? (int)failed() : REAL(fdatasync)(fd);
}

int fsync(int fd) {
    return is_store(fd) && mode_is("sync") ? (int)failed() : REAL(fsync)(fd);
}

int msync(void *address, size_t length, int flags) {
    return mode_is("sync") ? (int)failed() : REAL(msync)(address, length, flags);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return is_store(fd) && mode_is("write") ? failed() : REAL(writev)(fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    if (!is_store(fd)) return REAL(pwrite)(fd, bytes, length, at);
    if (length >= PAGE) return mode_is("write") ? failed() : REAL(pwrite)(fd, bytes, length, at);
    /* Only headers are shorter than a page: written through a descriptor that syncs, put back through one that does not. */
    int syncs = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    if (mode_is("meta")) return failed();
    if (mode_is("late") || (mode_is("stuck") && syncs)) {
        REAL(pwrite)(fd, bytes, length, at);
        return failed();
    }
    return mode_is("stuck") ? failed() : REAL(pwrite)(fd, bytes, length, at);
}
