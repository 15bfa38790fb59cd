/* Counts what a program does to files, and lets the disk fail at the Nth event.

   Preloaded (LD_PRELOAD) into the program. It is asleep until arm() is called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ASLEEP, COUNT, KILL, FULL };
static volatile int mode = ASLEEP;
static volatile long events = 0, at = 0;

void arm(int what, long number) { events = 0; at = number; mode = what; }
void disarm(void) { mode = ASLEEP; }
long counted(void) { return events; }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* One more event; says whether it must fail for want of space. */
static int event(int takes_space) {
  if (mode == ASLEEP) return 0;
  long now = __sync_add_and_fetch(&events, 1);
  if (mode == KILL && now == at) kill(getpid(), SIGKILL);
  if (mode == FULL && now >= at && takes_space) { errno = ENOSPC; return 1; }
  return 0;
}

static int is_file(int fd) {
  struct stat about;
  return mode != ASLEEP && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

ssize_t write(int fd, const void *data, size_t size) {
  if (is_file(fd) && event(1)) return -1;
  return REAL(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
  if (is_file(fd) && event(1)) return -1;
  return REAL(pwrite)(fd, data, size, place);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
  if (is_file(fd) && event(1)) return -1;
  return REAL(pwrite64)(fd, data, size, place);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (is_file(fd) && event(1)) return -1;
  return REAL(writev)(fd, parts, count);
}
int fsync(int fd) {
  event(0);
  return REAL(fsync)(fd);
}
int rename(const char *from, const char *to) {
  event(0);
  return REAL(rename)(from, to);
}
int renameat(int one, const char *from, int other, const char *to) {
  event(0);
  return REAL(renameat)(one, from, other, to);
}
int link(const char *from, const char *to) {
  if (event(1)) return -1;
  return REAL(link)(from, to);
}
int linkat(int one, const char *from, int other, const char *to, int flags) {
  if (event(1)) return -1;
  return REAL(linkat)(one, from, other, to, flags);
}
int unlink(const char *path) {
  event(0);
  return REAL(unlink)(path);
}
int unlinkat(int folder, const char *path, int flags) {
  event(0);
  return REAL(unlinkat)(folder, path, flags);
}
int mkdir(const char *path, mode_t bits) {
  if (event(1)) return -1;
  return REAL(mkdir)(path, bits);
}

#define OPEN(name, names)                                                \
  {                                                                      \
    mode_t bits = 0;                                                     \
    if (flags & (O_CREAT | O_TMPFILE)) {                                 \
      va_list rest;                                                      \
      va_start(rest, flags);                                             \
      bits = va_arg(rest, mode_t);                                       \
      va_end(rest);                                                      \
    }                                                                    \
    if ((flags & O_CREAT) && event(1)) return -1;                        \
    return REAL(name) names;                                             \
  }
int open(const char *path, int flags, ...) OPEN(open, (path, flags, bits))
int open64(const char *path, int flags, ...) OPEN(open64, (path, flags, bits))
int openat(int folder, const char *path, int flags, ...) OPEN(openat, (folder, path, flags, bits))
int openat64(int folder, const char *path, int flags, ...)
    OPEN(openat64, (folder, path, flags, bits))
