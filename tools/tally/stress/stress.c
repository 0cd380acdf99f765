/* tally stress: sends load to a table and its partitions and reports the results. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/page/page.h"
#include "tools/tally/stress/outcome.h"
#include "tools/tally/stress/view.h"

struct stress_flags {
    const char *profile, *file, *print, *rate, *retry, *html;
    uint32_t seconds, seed;
    bool json, quiet, no_load, poisson;
};

static struct load *running; /* for on_interrupt */

static void on_interrupt(int sig) {
    (void)sig;
    if (running) load_stop(running);
}

static void show(struct stress *s) {
    running = s->load;
    if (!s->quiet) view_show(s);
}

static int read_flags(struct stress *s, const struct stress_flags *f, struct err *e) {
    if (s->connections < 1 || s->connections > 10000 || s->in_flight < 1 || (uint64_t)s->in_flight > LOAD_IN_FLIGHT_MAX)
        return err_set(e, ERR_CONFIG, "--connections must be 1 to 10000, --in-flight 1 to %d", LOAD_IN_FLIGHT_MAX);
    if (f->seconds < 1) return err_set(e, ERR_CONFIG, "--seconds must be 1 or more");
    const char *name = f->profile ? f->profile : "uniform", *text = plan_profile(name);
    if (f->file && f->profile) return err_set(e, ERR_CONFIG, "give one of --profile and --file");
    if (!f->file && !text) return err_set(e, ERR_CONFIG, "there is no profile '%s'; see tally stress --help", name);
    if ((f->file ? plan_open(&s->plan, f->file, e) : plan_parse(&s->plan, name, slice_str(text), e)) ||
        retry_parse(f->retry, &s->retry, e))
        return -1;
    char *end = NULL;
    if (f->rate) s->plan.rate = strtod(f->rate, &end);
    if (f->rate && (end == f->rate || *end || !(s->plan.rate >= 0 && s->plan.rate <= 1e7)))
        return err_set(e, ERR_CONFIG, "--rate must be a number of requests a second, or 0 for a closed loop, not '%s'",
                       f->rate);
    s->seconds = f->seconds;
    s->seed = f->seed;
    s->quiet = f->quiet;
    s->skip_load = f->no_load;
    s->poisson = f->poisson;
    s->show = show;
    return 0;
}

static int report(const struct stress *s, const struct stress_flags *f, struct err *e) {
    const char *profile = f->file ? f->file : f->profile ? f->profile : "uniform";
    struct buf out;
    if (f->html) {
        buf_init(&out, 0);
        outcome_html(s, profile, &out);
        int rc = page_save(f->html, &out, e);
        buf_fini(&out);
        if (rc) return -1;
    }
    if (!f->json) {
        outcome_text(s, profile);
        return 0;
    }
    buf_init(&out, 0);
    outcome_json(s, profile, &out);
    printf("%.*s\n", SLICE_FMT(buf_slice(&out)));
    buf_fini(&out);
    return 0;
}

/* Ctrl-C ends the run early; the report is still printed. */
static int stress(struct stress *s, const struct stress_flags *f, struct err *e) {
    struct sigaction a = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
    int rc = stress_run(s, e);
    view_end(s);
    return rc ? -1 : report(s, f, e);
}

int tally_stress(int argc, char **argv) {
    struct stress s = {.connections = 8, .in_flight = 8};
    struct stress_flags f = {.seconds = 30, .seed = 1, .retry = "none"};
    const struct flag flags[] = {
        FLAG_TEXT("profile", "NAME", f.profile,
             "uniform (the default), zipf, single, append, time_series, wide, mixed_static or burst"),
        FLAG_TEXT("file", "FILE", f.file, "a profile of your own (YAML); --print-profile shows what one looks like"),
        FLAG_TEXT("print-profile", "NAME", f.print, "prints a built-in profile and exits"),
        FLAG_NUMBER("seconds", "N", f.seconds, "duration in seconds (30)"),
        FLAG_TEXT("rate", "N", f.rate,
             "an open loop: N requests a second, however fast they are answered; 0: a closed loop (what the profile "
             "says, most say closed)"),
        FLAG_ON("poisson", f.poisson, "for an open loop: at random times instead of regular ones"),
        FLAG_NUMBER("connections", "N", s.connections, "(8)"),
        FLAG_NUMBER("in-flight", "N", s.in_flight, "requests under way on each (8)"),
        FLAG_TEXT("retry", "HOW", f.retry,
             "retries of throttled requests: none (none), fixed:MS[,TRIES], exponential[:MIN,DELTA,MAX[,TRIES]] in "
             "milliseconds (3000,30000,90000,5): min(MIN + random(0.8 DELTA, 1.2 DELTA) x (2^tries - 1), MAX)"),
        FLAG_ON("no-load", f.no_load, "the profile's rows exist already"),
        FLAG_NUMBER("seed", "N", f.seed, "seed of all random choices (1)"),
        FLAG_TEXT("html", "FILE", f.html, "the report as a page with plots, too"),
        FLAG_ON("json", f.json, "the report as JSON"),
        FLAG_ON("quiet", f.quiet, "shows nothing while it runs"),
        REMOTE_FLAGS(&s.remote)};
    struct err e = {0};
    int rc = flags_read("stress", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (f.print) {
        const char *text = plan_profile(f.print);
        if (!text) err_set(&e, ERR_CONFIG, "there is no profile '%s'; see tally stress --help", f.print);
        if (text) printf("%s", text);
        return text ? EXIT_DONE : say_wrong(f.json, "stress", &e);
    }
    if (read_flags(&s, &f, &e)) return say_wrong(f.json, "stress", &e);
    rc = stress(&s, &f, &e);
    bool failed = stress_has_failed(&s);
    stress_fini(&s);
    plan_fini(&s.plan);
    if (rc) return e.code == ERR_CONFIG ? say_wrong(f.json, "stress", &e) : say_no(f.json, "stress", &e);
    return failed ? EXIT_NO : EXIT_DONE;
}
