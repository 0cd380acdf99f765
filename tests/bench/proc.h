/* Server processes under the benchmark: start, stop, CPU time, memory. Linux. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

struct proc {
    pid_t pid;
    char host[64];
    uint16_t port, admin_port; /* admin_port 0: none */
    char dir[256];       /* data folder; a scratch one is removed by proc_stop; empty when there is none */
    bool tls;            /* the port speaks it */
    bool kept;           /* the data folder stays */
    double ready_seconds; /* from fork to the ready line */
};

/* How tallyd is started: texts of its flags. */
struct proc_flags {
    const char *durability, *threads;
    const char *metering, *write_size; /* NULL: the default */
    const char *dir;                   /* where the data stay, made when it is not there; NULL: a scratch folder */
    bool tls;                          /* and nothing without it; with certificates of the tally beside tallyd */
    bool uncached;                     /* no row is kept in front of the store */
    bool own_memory;                   /* caches of the size that it takes by itself, not of the ceilings' */
};
/* Starts tallyd and waits for its ready line. 0 / -1 with a message on stderr. */
int proc_start_tallyd(struct proc *p, const char *tallyd, const struct proc_flags *flags);
/* Forks a child that runs main_fn(port_fd, arg): the child writes its port as text and a newline to port_fd. */
int proc_start_child(struct proc *p, int (*main_fn)(int port_fd, const char *dir, void *arg), void *arg);
/* One that runs already and goes on; it is not stopped. */
void proc_beside(struct proc *p, const char *host, uint16_t port, pid_t pid);
void proc_stop(struct proc *p);

/* CPU nanoseconds used by all threads of the process so far; 0 when it cannot be read. */
uint64_t proc_cpu_ns(pid_t pid);
/* Asks an admin port for a path; returns the bytes of the answer that fit into text, which ends with a 0. */
size_t proc_get(uint16_t port, const char *path, char *text, size_t cap);
/* Waits until it does next to nothing (compactions after a load), at most a minute. */
void proc_await_quiet(pid_t pid);
/* Who listens on a port of this machine; 0: not found, or not ours to see. */
pid_t proc_of_port(uint16_t port);
/* The number that tallyd's /metrics gives under the name; 0 when there is none. */
double proc_metric(const struct proc *p, const char *name);
/* Resident memory in KiB. */
uint64_t proc_rss_kib(pid_t pid);
/* An empty folder that nobody else has, for proc_remove_dir. */
int proc_make_dir(char dir[256]) MUST_CHECK;
void proc_remove_dir(const char *dir);
/* Runs a program to its end, its output thrown away. 0: it ended with 0. */
int proc_run(const char *const *arguments);
double now_seconds(void);
uint64_t now_ns(void);
