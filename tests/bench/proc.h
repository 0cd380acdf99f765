/* Server processes under the benchmark: start, stop, CPU time, memory. Linux. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    pid_t pid;
    char host[64];
    uint16_t port, admin_port; /* admin_port 0: none */
    char dir[64];        /* scratch data folder, removed by proc_stop; empty when there is none */
    double ready_seconds; /* from fork to the ready line */
};

/* How tallyd is started: texts of its flags. */
struct proc_flags {
    const char *durability, *threads;
    const char *metering, *write_size; /* NULL: the default */
};
/* Starts tallyd on a scratch folder and waits for its ready line. 0 / -1 with a message on stderr. */
int proc_start_tallyd(struct proc *p, const char *tallyd, const struct proc_flags *flags);
/* Forks a child that runs main_fn(port_fd, arg): the child writes its port as text and a newline to port_fd. */
int proc_start_child(struct proc *p, int (*main_fn)(int port_fd, const char *dir, void *arg), void *arg);
void proc_stop(struct proc *p);

/* CPU nanoseconds used by all threads of the process so far; 0 when it cannot be read. */
uint64_t proc_cpu_ns(pid_t pid);
/* The number that tallyd's /metrics gives under the name; 0 when there is none. */
double proc_metric(const struct proc *p, const char *name);
/* Resident memory in KiB. */
uint64_t proc_rss_kib(pid_t pid);
double now_seconds(void);
uint64_t now_ns(void);
