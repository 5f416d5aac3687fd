// Preloaded into a command (LD_PRELOAD), makes chosen system calls fail as a bad disk, a full one or a killer would.
//
// Counts the calls that make, write, sync, close, rename or remove files below FAULT_FOLDER, in this process and those that it
// forks, and does FAULT_KIND to the call of the number FAULT_AT (from 1), and to all after it where FAULT_STICKY is set. Without
// FAULT_AT it only counts. Locks, clocks and forked children have variables of their own; faults.py says what sets them.
//
// Calls that the C library makes within itself (standard output by stdio) do not pass here; /dev/full stands for those.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
  most_calls = 1 << 16,
  most_descriptors = 1 << 12
};

/// What the command and its children share with the test that started them: a file of FAULT_STATE, mapped.
struct State {
  _Atomic unsigned calls;         ///< that were counted
  _Atomic unsigned forks;         ///< of all processes
  _Atomic unsigned lock_calls;    ///< that were refused
  _Atomic unsigned clock_reads;   ///< of the time of day
  _Atomic unsigned faults;        ///< that were done
  char kind_of_call[most_calls];  ///< 'o'pen, 'w'rite, 's'ync, 't'runcate, 'c'lose, 'l'ink or rename, 'u'nlink, 'm'kdir
};

static struct State* state;
static const char* folder;
static const char* fault;
static unsigned fault_at, child_at, clock_at;
static int sticky;
static const char* child_stage;
static const char* locks;
static double clock_jump;
static unsigned my_fork;                         ///< which of all forks made this process; 0 in the first
static unsigned char watched[most_descriptors];  ///< 1: a file that is written; 2: memory that a child sends its result by

static unsigned number_of(const char* variable) {
  const char* text = getenv(variable);
  return text == NULL ? 0 : (unsigned)strtoul(text, NULL, 10);
}

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("FAULT_STATE");
  if (path == NULL) return;
  int (*real_open)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  const int descriptor = real_open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) abort();
  state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (state == MAP_FAILED) abort();
  int (*real_close)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
  real_close(descriptor);
  folder = getenv("FAULT_FOLDER");
  fault = getenv("FAULT_KIND");
  fault_at = number_of("FAULT_AT");
  sticky = getenv("FAULT_STICKY") != NULL;
  child_at = number_of("FAULT_CHILD");
  child_stage = getenv("FAULT_STAGE");
  locks = getenv("FAULT_LOCKS");
  clock_at = number_of("FAULT_CLOCK_AT");
  clock_jump = getenv("FAULT_CLOCK_JUMP") == NULL ? 0 : strtod(getenv("FAULT_CLOCK_JUMP"), NULL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void die_of(int signal) {
  atomic_fetch_add(&state->faults, 1);
  kill(getpid(), signal);
  if (signal == SIGKILL) pause();
}

/// Whether a disk that began to fail earlier fails this kind of call, too: a full one still removes and closes files.
static int goes_on_failing(char kind) {
  if (strcmp(fault, "enospc") == 0 || strcmp(fault, "edquot") == 0) return strchr("owslmt", kind) != NULL;
  if (strcmp(fault, "erofs") == 0) return strchr("olum", kind) != NULL;
  if (strcmp(fault, "emfile") == 0) return kind == 'o';
  return 1;
}

/// Counts a call. Returns the error that it is to fail with, 0 where it is to succeed, or -1 where it is to do half of its work.
static int counted(char kind) {
  const unsigned number = atomic_fetch_add(&state->calls, 1) + 1;
  if (number <= most_calls) state->kind_of_call[number - 1] = kind;
  if (fault_at == 0 || (sticky ? number < fault_at : number != fault_at)) return 0;
  if (number > fault_at && !goes_on_failing(kind)) return 0;
  // Other calls are not interrupted on Linux, and nothing else is done by halves.
  if (strchr(strcmp(fault, "eintr") == 0 ? "owstc" : strcmp(fault, "short") == 0 ? "w" : "owslumtc", kind) == NULL) return 0;
  static const struct {
    const char* name;
    int signal;
  } signals[] = {{"kill", SIGKILL}, {"int", SIGINT}, {"term", SIGTERM}, {"hup", SIGHUP}};
  for (unsigned i = 0; i < sizeof signals / sizeof *signals; ++i)
    if (strcmp(fault, signals[i].name) == 0) return die_of(signals[i].signal), 0;
  atomic_fetch_add(&state->faults, 1);
  static const struct {
    const char* name;
    int error;
  } errors[] = {{"enospc", ENOSPC}, {"eio", EIO},       {"erofs", EROFS}, {"eintr", EINTR},
                {"edquot", EDQUOT}, {"emfile", EMFILE}, {"short", -1}};
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (strcmp(fault, errors[i].name) == 0) return errors[i].error;
  abort();
}

/// Whether a path, from a folder's descriptor, is that of a file to watch.
static int is_watched(int at, const char* path) {
  if (state == NULL || folder == NULL || path == NULL) return 0;
  char absolute[PATH_MAX];
  if (path[0] == '/') return strncmp(path, folder, strlen(folder)) == 0;
  ssize_t length = 0;
  if (at == AT_FDCWD) {
    if (getcwd(absolute, sizeof absolute) == NULL) return 0;
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    if ((length = readlink(link, absolute, sizeof absolute - 1)) < 0) return 0;
    absolute[length] = '\0';
  }
  return strncmp(absolute, folder, strlen(folder)) == 0;
}

static int is_watched_descriptor(int descriptor, int as) {
  return state != NULL && descriptor >= 0 && descriptor < most_descriptors && watched[descriptor] == as;
}

static int watching(int descriptor, int as) {
  if (descriptor >= 0 && descriptor < most_descriptors) watched[descriptor] = (unsigned char)as;
  return descriptor;
}

#define FAIL_IF(kind)              \
  const int error = counted(kind); \
  if (error > 0) {                 \
    errno = error;                 \
    return -1;                     \
  }

static int opens_for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0; }

#define DEFINE_OPEN(name)                                                                                            \
  int name(const char* path, int flags, ...) {                                                                       \
    mode_t mode = 0;                                                                                                 \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                                                \
      va_list more;                                                                                                  \
      va_start(more, flags);                                                                                         \
      mode = va_arg(more, mode_t);                                                                                   \
      va_end(more);                                                                                                  \
    }                                                                                                                \
    if (!opens_for_writing(flags) || !is_watched(AT_FDCWD, path)) return watching(REAL(name)(path, flags, mode), 0); \
    FAIL_IF('o')                                                                                                     \
    if ((flags & O_TMPFILE) == O_TMPFILE && getenv("FAULT_NO_UNNAMED_FILES") != NULL) {                              \
      errno = EOPNOTSUPP;                                                                                            \
      return -1;                                                                                                     \
    }                                                                                                                \
    return watching(REAL(name)(path, flags, mode), 1);                                                               \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_FOPEN(name)                                          \
  FILE* name(const char* path, const char* mode) {                  \
    const int watch = mode[0] != 'r' && is_watched(AT_FDCWD, path); \
    const int error = watch ? counted('o') : 0;                     \
    if (error > 0) {                                                \
      errno = error;                                                \
      return NULL;                                                  \
    }                                                               \
    FILE* file = REAL(name)(path, mode);                            \
    if (file != NULL) watching(fileno(file), watch);                \
    return file;                                                    \
  }
DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

int memfd_create(const char* name, unsigned flags) { return watching(REAL(memfd_create)(name, flags), 2); }

/// The child whose turn it is dies before it sends its result, or half way.
static void send_by_child(int descriptor, const void* bytes, size_t count) {
  if (my_fork == 0 || my_fork != child_at || child_stage == NULL || !is_watched_descriptor(descriptor, 2)) return;
  if (strcmp(child_stage, "send") == 0) die_of(SIGKILL);
  if (strcmp(child_stage, "half") == 0) {
    if (REAL(write)(descriptor, bytes, count / 2) < 0) abort();
    die_of(SIGKILL);
  }
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  send_by_child(descriptor, bytes, count);
  if (!is_watched_descriptor(descriptor, 1)) return REAL(write)(descriptor, bytes, count);
  FAIL_IF('w')
  return REAL(write)(descriptor, bytes, error < 0 ? (count + 1) / 2 : count);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  if (!is_watched_descriptor(descriptor, 1)) return REAL(writev)(descriptor, parts, count);
  FAIL_IF('w')
  return REAL(writev)(descriptor, parts, error < 0 ? (count + 1) / 2 : count);
}

#define DEFINE_PWRITE(name)                                                                     \
  ssize_t name(int descriptor, const void* bytes, size_t count, off_t at) {                     \
    if (!is_watched_descriptor(descriptor, 1)) return REAL(name)(descriptor, bytes, count, at); \
    FAIL_IF('w')                                                                                \
    return REAL(name)(descriptor, bytes, error < 0 ? (count + 1) / 2 : count, at);              \
  }
DEFINE_PWRITE(pwrite)
DEFINE_PWRITE(pwrite64)

#define DEFINE_SYNC(name)                                                     \
  int name(int descriptor) {                                                  \
    if (!is_watched_descriptor(descriptor, 1)) return REAL(name)(descriptor); \
    FAIL_IF('s')                                                              \
    return REAL(name)(descriptor);                                            \
  }
DEFINE_SYNC(fsync)
DEFINE_SYNC(fdatasync)

#define DEFINE_TRUNCATE(name)                                                         \
  int name(int descriptor, off_t length) {                                            \
    if (!is_watched_descriptor(descriptor, 1)) return REAL(name)(descriptor, length); \
    FAIL_IF('t')                                                                      \
    return REAL(name)(descriptor, length);                                            \
  }
DEFINE_TRUNCATE(ftruncate)
DEFINE_TRUNCATE(ftruncate64)

/// As on Linux, the descriptor is closed even where the call fails.
int close(int descriptor) {
  const int watch = is_watched_descriptor(descriptor, 1);
  watching(descriptor, 0);
  if (!watch) return REAL(close)(descriptor);
  const int error = counted('c');
  const int closed = REAL(close)(descriptor);
  if (error <= 0) return closed;
  errno = error;
  return -1;
}

int link(const char* from, const char* to) {
  if (!is_watched(AT_FDCWD, to)) return REAL(link)(from, to);
  FAIL_IF('l')
  return REAL(link)(from, to);
}

int linkat(int from_at, const char* from, int to_at, const char* to, int flags) {
  if (!is_watched(to_at, to)) return REAL(linkat)(from_at, from, to_at, to, flags);
  FAIL_IF('l')
  return REAL(linkat)(from_at, from, to_at, to, flags);
}

int rename(const char* from, const char* to) {
  if (!is_watched(AT_FDCWD, to)) return REAL(rename)(from, to);
  FAIL_IF('l')
  return REAL(rename)(from, to);
}

#define DEFINE_REMOVE(name)                                   \
  int name(const char* path) {                                \
    if (!is_watched(AT_FDCWD, path)) return REAL(name)(path); \
    FAIL_IF('u')                                              \
    return REAL(name)(path);                                  \
  }
DEFINE_REMOVE(unlink)
DEFINE_REMOVE(remove)

int mkdir(const char* path, mode_t mode) {
  if (!is_watched(AT_FDCWD, path)) return REAL(mkdir)(path, mode);
  FAIL_IF('m')
  return REAL(mkdir)(path, mode);
}

/// A file system that takes no locks, such as NFS without its lock daemon.
static int refuses_lock(void) {
  if (state == NULL || locks == NULL) return 0;
  atomic_fetch_add(&state->lock_calls, 1);
  errno = strcmp(locks, "enolck") == 0 ? ENOLCK : EACCES;
  return 1;
}

#define DEFINE_FCNTL(name)                                                                                                 \
  int name(int descriptor, int command, ...) {                                                                             \
    va_list more;                                                                                                          \
    va_start(more, command);                                                                                               \
    void* argument = va_arg(more, void*);                                                                                  \
    va_end(more);                                                                                                          \
    const int is_lock = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK;                               \
    if (is_lock && is_watched_descriptor(descriptor, 1) && ((struct flock*)argument)->l_type != F_UNLCK && refuses_lock()) \
      return -1;                                                                                                           \
    return REAL(name)(descriptor, command, argument);                                                                      \
  }
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

int flock(int descriptor, int operation) {
  if (is_watched_descriptor(descriptor, 1) && refuses_lock()) return -1;
  return REAL(flock)(descriptor, operation);
}

/// Seconds that the time of day is off by now.
static double jump(void) {
  if (state == NULL || clock_at == 0) return 0;
  if (atomic_fetch_add(&state->clock_reads, 1) + 1 < clock_at) return 0;
  atomic_fetch_add(&state->faults, 1);
  return clock_jump;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = REAL(clock_gettime)(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += (time_t)jump();
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  const int result = REAL(gettimeofday)(now, zone);
  if (result == 0) now->tv_sec += (time_t)jump();
  return result;
}

time_t time(time_t* at) {
  const time_t now = REAL(time)(NULL) + (time_t)jump();
  if (at != NULL) *at = now;
  return now;
}

static int is_stage(const char* stage) {
  return state != NULL && my_fork != 0 && my_fork == child_at && child_stage != NULL &&
         strncmp(child_stage, stage, strlen(stage)) == 0;
}

/// Ends this process when it has computed for so long.
static void die_after(double seconds) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
  timer_t timer;
  struct itimerspec limit = {.it_value = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}};
  if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0 || timer_settime(timer, 0, &limit, NULL) != 0) abort();
}

/// "refuse", "fork", "prctl", "cpu:SECONDS", "send", "half", "exit": when the child of the number FAULT_CHILD dies, or is not
/// made.
pid_t fork(void) {
  if (state == NULL) return REAL(fork)();
  const unsigned number = atomic_fetch_add(&state->forks, 1) + 1;
  if (number == child_at && child_stage != NULL && strcmp(child_stage, "refuse") == 0) {
    atomic_fetch_add(&state->faults, 1);
    errno = EAGAIN;
    return -1;
  }
  const pid_t child = REAL(fork)();
  if (child != 0) return child;
  my_fork = number;
  if (is_stage("fork")) die_of(SIGKILL);
  if (is_stage("cpu:")) die_after(strtod(child_stage + strlen("cpu:"), NULL));
  return 0;
}

int prctl(int option, ...) {
  va_list more;
  va_start(more, option);
  unsigned long arguments[4];
  for (int i = 0; i < 4; ++i) arguments[i] = va_arg(more, unsigned long);
  va_end(more);
  const int result = REAL(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
  if (is_stage("prctl")) die_of(SIGKILL);
  return result;
}

void _exit(int code) {
  if (is_stage("exit")) die_of(SIGKILL);
  REAL(_exit)(code);
  __builtin_unreachable();
}
