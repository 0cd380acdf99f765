#include "cql/syntax/walk.h"

#include "cql/syntax/grammar.h"
#include "cql/syntax/production.h"
#include "cql/syntax/production_tables.h"

/* Bounds of the work for one fault; beyond them the fault is worded without it. A statement of a
 * few hundred tokens takes some ten thousand steps. */
enum {
    TOKENS_MAX = 4096,
    STEPS_MAX = 1000000,
    GUARDS_DEEP_MAX = 24,
    ALTERNATIVES_MAX = 64,
    GUARD_CACHE = 2048,
    DECISIONS = 1024,
    CONTEXTS_MAX = 1024,
    SPOTS_MAX = 4096
};
enum { SET_BLANK = 0xffff };

/* A call of a production: the node where its caller continues, and the caller's own frame. */
struct frame {
    const struct frame *up;
    uint16_t next;
};

/* A guard that was tried at a token: whether it can be read there. */
struct guard_seen {
    uint32_t token;
    uint16_t guard;
    bool can;
};

/* The outcome of a choice by its first token alone (second: SET_BLANK) or by two tokens. A decision
 * without a guard depends on these alone, so it is made once and kept. */
struct decision {
    uint16_t choice; /* its node + 1; 0: free */
    uint16_t first, second;
    int16_t alternative; /* or NONE, or UNDECIDED: it takes more tokens */
};

enum { NONE = -1, UNDECIDED = -2 };

struct walk {
    struct arena *arena;
    struct token_reader reader;
    struct walk_result *out;
    struct token *items;
    uint16_t *terminals;  /* of items */
    uint32_t *visible;    /* items that are no blanks */
    uint32_t n_items, n_visible, room;
    uint32_t steps, depth;
    bool ended, given_up;
    struct guard_seen *guards;
    struct decision *decisions;
    struct lookahead *levels[GUARDS_DEEP_MAX + 1]; /* by depth */
};

/* ---- tokens ---- */

static uint16_t terminal_of(struct token t) {
    char name[32];
    const char *want = token_name(t.code);
    /* a word that has no place of its own in grammar.y */
    if (t.code == T_IDENT && t.word && t.text.n + 3 < sizeof(name)) {
        size_t n = 0;
        for (const char *p = "K_"; *p; p++) name[n++] = *p;
        for (size_t i = 0; i < t.text.n; i++)
            name[n++] = (char)(t.text.p[i] >= 'a' && t.text.p[i] <= 'z' ? t.text.p[i] - 32 : t.text.p[i]);
        name[n] = 0;
        want = name;
    }
    size_t a = 0, b = PRODUCTION_TERMINALS;
    while (a < b) {
        size_t mid = (a + b) / 2;
        int c = strcmp(want, production_terminals[mid]);
        if (!c) return (uint16_t)mid;
        if (c < 0) b = mid;
        else a = mid + 1;
    }
    return terminal_of((struct token){.code = T_IDENT}); /* words of Keyspaces' own are names to Cassandra */
}

static bool give_up(struct walk *w) { return w->given_up = true; }

static void add_item(struct walk *w, struct token t) {
    if (w->n_items == w->room) {
        give_up(w);
        return;
    }
    if (t.code != WALK_BLANK) w->visible[w->n_visible++] = w->n_items;
    w->terminals[w->n_items] = t.code == WALK_BLANK ? SET_BLANK : terminal_of(t);
    w->items[w->n_items++] = t;
}

/* The text between two tokens: each run of blanks and each comment is one token of Cassandra's. */
static void add_gap(struct walk *w, const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        const uint8_t *start = p;
        if (*p == '/' && p + 1 < end && p[1] == '*') {
            for (p += 2; p < end && !(p[-1] == '/' && p[-2] == '*' && p - start > 3); p++) continue;
        } else if (*p == '-' || *p == '/') {
            while (p < end && *p != '\n' && *p != '\r') p++;
            if (p < end) p++;
        } else {
            while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
        }
        add_item(w, (struct token){.code = WALK_BLANK, .text = slice_of(start, (size_t)(p - start))});
    }
}

/* The i-th token, read on first use; past the end, the end. Its number among all. */
static uint32_t look(struct walk *w, uint32_t i) {
    while (w->n_visible <= i && !w->ended && !w->given_up) {
        const uint8_t *from = w->n_items ? w->items[w->n_items - 1].text.p + w->items[w->n_items - 1].text.n
                                         : w->reader.text.p;
        struct token t = token_next(&w->reader);
        w->ended = !t.code || t.code == T_ERROR;
        if (t.code == T_ERROR) {
            if (!w->out->fault) w->out->fault = WALK_BAD_TOKEN;
            t = (struct token){.text = slice_of(w->reader.text.p + w->reader.text.n, 0)};
        } else {
            add_gap(w, from, t.text.p);
        }
        add_item(w, t);
    }
    if (!w->n_visible) return 0;
    return i < w->n_visible ? i : w->n_visible - 1;
}

static uint16_t terminal_at(struct walk *w, uint32_t i) {
    i = look(w, i);
    return w->n_visible ? w->terminals[w->visible[i]] : PRODUCTION_EOF;
}

static bool is_token(uint16_t wanted, uint16_t terminal) {
    return wanted < PRODUCTION_TERMINALS ? wanted == terminal
                                         : production_sets[wanted - PRODUCTION_TERMINALS][terminal];
}

/* ---- looking ahead ---- */

/* A place that an alternative may have come to. context: the callers since the choice (0: the
 * productions that hold the choice may be called from anywhere). */
struct spot {
    uint16_t node, context;
    uint8_t alternative;
};

struct spots {
    struct spot items[SPOTS_MAX];
    uint32_t n;
};

struct spot_seen {
    struct spot spot;
    uint32_t round; /* another one: free */
};

struct context {
    uint16_t next, up;
};

enum { SEEN_SHIFT = 20, SEEN_ROOM = 1 << (32 - SEEN_SHIFT) };

struct lookahead {
    struct walk *w;
    struct context contexts[CONTEXTS_MAX]; /* from 1 */
    uint32_t n_contexts;
    struct spots tokens; /* that can come next */
    struct spots work;
    struct spot_seen seen[SEEN_ROOM]; /* open addressing */
    uint32_t round, n_seen;
    bool out[ALTERNATIVES_MAX]; /* alternatives that are given up, though they fit */
    bool guarded;               /* a guard was asked */
};

static uint16_t enter(struct lookahead *l, uint16_t next, uint16_t up) {
    for (uint32_t i = 1; i < l->n_contexts; i++)
        if (l->contexts[i].next == next && l->contexts[i].up == up) return (uint16_t)i;
    if (l->n_contexts == CONTEXTS_MAX) {
        give_up(l->w);
        return 0;
    }
    l->contexts[l->n_contexts] = (struct context){next, up};
    return (uint16_t)l->n_contexts++;
}

static void push(struct lookahead *l, struct spots *to, struct spot s) {
    if (to->n == SPOTS_MAX) give_up(l->w);
    else to->items[to->n++] = s;
}

/* Where the spot is or belongs. */
static struct spot_seen *find_seen(struct lookahead *l, struct spot s) {
    uint32_t i = (s.node + s.context * 31u * 1024u + s.alternative * 131u) * 2654435761u >> SEEN_SHIFT;
    for (; l->seen[i].round == l->round; i = (i + 1) % SEEN_ROOM)
        if (l->seen[i].spot.node == s.node && l->seen[i].spot.context == s.context &&
            l->seen[i].spot.alternative == s.alternative)
            break;
    return &l->seen[i];
}

static void push_next(struct lookahead *l, struct spot s) {
    const struct production_node *x = &production_nodes[s.node];
    switch ((enum production_kind)x->kind) {
    case PRODUCTION_EMPTY: push(l, &l->work, (struct spot){x->next, s.context, s.alternative}); return;
    case PRODUCTION_TOKEN: push(l, &l->tokens, s); return;
    case PRODUCTION_CALL:
        push(l, &l->work, (struct spot){production_starts[x->arg], enter(l, x->next, s.context), s.alternative});
        return;
    case PRODUCTION_CHOICE:
        for (uint8_t i = 0; i < x->n; i++)
            push(l, &l->work, (struct spot){production_alternatives[x->arg + i].node, s.context, s.alternative});
        return;
    case PRODUCTION_END:
        if (s.context) {
            push(l, &l->work, (struct spot){l->contexts[s.context].next, l->contexts[s.context].up, s.alternative});
            return;
        }
        /* any caller of the production may go on */
        for (uint16_t i = production_callers_from[x->arg]; i < production_callers_from[x->arg + 1]; i++)
            push(l, &l->work, (struct spot){production_nodes[production_callers[i]].next, 0, s.alternative});
        return;
    }
}

/* The tokens that can come next from the spots of `work`. When two alternatives have come to the
 * same spot, the later one is given up. */
static void close_spots(struct lookahead *l) {
    l->round++;
    l->n_seen = 0;
    l->tokens.n = 0;
    while (l->work.n && !l->w->given_up) {
        struct spot s = l->work.items[--l->work.n];
        if (++l->w->steps > STEPS_MAX) give_up(l->w);
        struct spot_seen *seen = find_seen(l, s);
        if (seen->round == l->round) continue;
        if (l->n_seen++ > SEEN_ROOM / 2) {
            give_up(l->w);
            continue;
        }
        *seen = (struct spot_seen){s, l->round};
        push_next(l, s);
    }
    for (uint32_t i = 0; i < l->tokens.n; i++) {
        struct spot a = l->tokens.items[i];
        for (uint8_t other = 0; other < a.alternative; other++)
            if (!l->out[other] && find_seen(l, (struct spot){a.node, a.context, other})->round == l->round)
                l->out[a.alternative] = true;
    }
}

static void step(struct lookahead *l, uint16_t terminal) {
    l->work.n = 0;
    for (uint32_t i = 0; i < l->tokens.n; i++) {
        struct spot s = l->tokens.items[i];
        const struct production_node *x = &production_nodes[s.node];
        if (!l->out[s.alternative] && is_token(x->arg, terminal))
            push(l, &l->work, (struct spot){x->next, s.context, s.alternative});
    }
}

/* The alternatives that are left in `work`: how many, and the first. */
static int alive(const struct lookahead *l, int *first) {
    bool seen[ALTERNATIVES_MAX] = {false};
    int n = 0;
    *first = ALTERNATIVES_MAX;
    for (uint32_t i = 0; i < l->work.n; i++) {
        int alternative = l->work.items[i].alternative;
        if (l->out[alternative] || seen[alternative]) continue;
        seen[alternative] = true;
        n++;
        if (alternative < *first) *first = alternative;
    }
    return n;
}

static bool guard_holds(struct walk *w, uint16_t production, uint32_t token);

/* The alternative of a choice that the tokens from `at` on ask for, or NONE; *last: the token that
 * decided it. */
static int look_ahead(struct lookahead *l, const struct production_node *choice, uint32_t at, uint32_t *last) {
    struct walk *w = l->w;
    const struct production_alternative *alternatives = &production_alternatives[choice->arg];
    int first = 0,
        leave = choice->flags & PRODUCTION_OPTIONAL && !(choice->flags & PRODUCTION_BY_TABLE) ? choice->n - 1 : NONE;
    for (uint8_t i = 0; i < choice->n; i++) push(l, &l->work, (struct spot){alternatives[i].node, 0, i});
    for (uint32_t i = at; !w->given_up; i++) {
        *last = i;
        close_spots(l);
        step(l, terminal_at(w, i));
        int n = alive(l, &first);
        while (n > 1 && alternatives[first].guard && !w->given_up) {
            l->guarded = true;
            if (guard_holds(w, (uint16_t)(alternatives[first].guard - 1), at)) n = 1;
            else l->out[first] = true, n = alive(l, &first);
            look(w, i + 2); /* the token behind is read for the guard, and one more, as by any table */
        }
        if (n == 1) return first;
        if (!n) return leave;
        if (terminal_at(w, i) == PRODUCTION_EOF) return NONE;
    }
    return NONE;
}

static struct decision *decision_at(struct walk *w, struct decision key) {
    return &w->decisions[(key.choice * 31u + key.first * 7u + key.second) % DECISIONS];
}

/* The decision that was made before at such tokens; UNDECIDED: none. Looks at no token that making
 * it would not look at. */
static int recall(struct walk *w, uint16_t choice, uint32_t at, uint32_t *last) {
    struct decision key = {.choice = choice, .first = terminal_at(w, at), .second = SET_BLANK};
    for (*last = at;; key.second = terminal_at(w, ++*last)) {
        const struct decision *d = decision_at(w, key);
        if (d->choice != choice || d->first != key.first || d->second != key.second) return UNDECIDED;
        if (d->alternative != UNDECIDED || *last > at) return d->alternative;
    }
}

static int choose(struct walk *w, const struct production_node *choice, uint32_t at, uint32_t *last) {
    uint16_t key = (uint16_t)(choice - production_nodes + 1);
    int chosen = recall(w, key, at, last);
    if (chosen == UNDECIDED) {
        struct lookahead *l = w->levels[w->depth]; /* one for each depth of guards, made on first use */
        if (!l) {
            l = w->levels[w->depth] = arena_alloc(w->arena, sizeof(*l));
            if (!l) {
                give_up(w);
                return NONE;
            }
            memset(l->seen, 0, sizeof(l->seen)); /* the rest is large, and mostly never used */
            l->w = w;
            l->round = 0;
        }
        l->n_contexts = 1;
        l->work.n = 0;
        l->guarded = false;
        memset(l->out, 0, sizeof(l->out));
        chosen = look_ahead(l, choice, at, last);
        if (!l->guarded && !w->given_up && *last <= at + 1) {
            struct decision d = {
                .choice = key, .first = terminal_at(w, at), .second = SET_BLANK, .alternative = UNDECIDED};
            if (*last > at) {
                *decision_at(w, d) = d;
                d.second = terminal_at(w, *last);
            }
            d.alternative = (int16_t)chosen;
            *decision_at(w, d) = d;
        }
    }
    if (chosen >= 0 && choice->flags & PRODUCTION_BY_TABLE) look(w, *last + 1);
    return chosen;
}

/* ---- going through ---- */

/* Reads a production from token *at on, to its end. False: the text does not match, and r has the
 * reason. */
static bool go_through(struct walk *w, uint16_t production, uint32_t at, struct walk_result *r) {
    const struct frame *frame = NULL;
    uint16_t node = production_starts[production];
    for (look(w, at); !w->given_up; w->steps++) {
        const struct production_node *x = &production_nodes[node];
        struct frame *called;
        uint32_t last = at;
        int chosen;
        switch ((enum production_kind)x->kind) {
        case PRODUCTION_EMPTY: node = x->next; break;
        case PRODUCTION_CALL:
            called = arena_alloc(w->arena, sizeof(*called));
            if (!called) {
                give_up(w);
                return false;
            }
            *called = (struct frame){frame, x->next};
            frame = called;
            node = production_starts[x->arg];
            break;
        case PRODUCTION_END:
            if (!frame) return true;
            node = frame->next;
            frame = frame->up;
            break;
        case PRODUCTION_TOKEN:
            if (!is_token(x->arg, terminal_at(w, at))) {
                bool set = x->arg >= PRODUCTION_TERMINALS;
                *r = (struct walk_result){.fault = WALK_MISMATCH,
                                          .place = at,
                                          .seen = at,
                                          .want = set ? "set null" : production_terminals[x->arg]};
                if (set && !production_set_unseen[x->arg - PRODUCTION_TERMINALS]) r->fault = WALK_NO_WAY;
                return false;
            }
            /* Cassandra reads a bind marker in some places only to refuse it by name. */
            if (!w->depth && x->arg >= PRODUCTION_TERMINALS && w->n_visible &&
                w->items[w->visible[look(w, at)]].code == T_QMARK) {
                *r = (struct walk_result){.fault = WALK_MARKER,
                                          .place = at,
                                          .seen = at,
                                          .want = production_set_names[x->arg - PRODUCTION_TERMINALS]};
                return false;
            }
            if (terminal_at(w, at) != PRODUCTION_EOF) look(w, ++at);
            node = x->next;
            break;
        case PRODUCTION_CHOICE:
            chosen = choose(w, x, at, &last);
            if (chosen < 0) {
                *r = (struct walk_result){.fault = WALK_NO_WAY, .place = at, .seen = last};
                return false;
            }
            node = production_alternatives[x->arg + chosen].node;
            break;
        }
        if (w->steps > STEPS_MAX) give_up(w);
    }
    return false;
}

/* Remembered, because guards hold guards: brackets in brackets would take twice the time for each. */
static bool guard_holds(struct walk *w, uint16_t production, uint32_t token) {
    struct guard_seen *g = &w->guards[(token * 7u + production) % GUARD_CACHE];
    if (g->guard == production + 1 && g->token == token) return g->can;
    if (w->depth == GUARDS_DEEP_MAX) return !give_up(w);
    struct walk_result ignored;
    w->depth++;
    bool can = go_through(w, production, token, &ignored);
    w->depth--;
    *g = (struct guard_seen){.token = token, .guard = (uint16_t)(production + 1), .can = can};
    return can;
}

void cqli_walk(struct arena *a, struct slice text, struct walk_result *r) {
    struct walk_result found = {0};
    *r = (struct walk_result){0};
    struct walk w = {.arena = a, .out = r, .room = TOKENS_MAX};
    w.items = arena_alloc(a, TOKENS_MAX * sizeof(*w.items));
    w.terminals = arena_alloc(a, TOKENS_MAX * sizeof(*w.terminals));
    w.visible = arena_alloc(a, TOKENS_MAX * sizeof(*w.visible));
    w.guards = arena_alloc(a, GUARD_CACHE * sizeof(*w.guards));
    w.decisions = arena_zalloc(a, DECISIONS * sizeof(*w.decisions));
    if (!w.items || !w.terminals || !w.visible || !w.guards || !w.decisions) return;
    memset(w.guards, 0, GUARD_CACHE * sizeof(*w.guards));
    token_reader_init(&w.reader, text, &r->why);
    bool whole = go_through(&w, 0, 0, &found);
    if (r->fault == WALK_BAD_TOKEN) return;
    if (whole || w.given_up) return;
    *r = found;
    r->items = w.items;
    r->n_items = w.n_items;
    r->place = w.visible[look(&w, found.place)];
    r->seen = w.visible[look(&w, found.seen)];
}
