#include <dlfcn.h>
#include <pthread.h>

#include "engine/rados/librados.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct librados loaded;
static bool is_loaded;

static int find_functions(void *library, struct err *e) {
    const struct {
        const char *name;
        void *to;
    } functions[] = {
#define LIBRADOS(result, name, parameters) {"rados_" #name, &loaded.name},
#include "engine/rados/librados.def"
#undef LIBRADOS
    };
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found)
            return err_set(e, ERR_CONFIG, "the installed librados is too old: it has no function %s",
                           functions[i].name);
        memcpy(functions[i].to, &found, sizeof(found));
    }
    return 0;
}

const struct librados *librados_load(struct err *e) {
    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        void *library = dlopen("librados.so.2", RTLD_NOW | RTLD_LOCAL);
        if (library) is_loaded = find_functions(library, e) == 0;
        else err_set(e, ERR_CONFIG, "--store rados needs Ceph's client library, package librados2: %s", dlerror());
    }
    const struct librados *lib = is_loaded ? &loaded : NULL;
    pthread_mutex_unlock(&lock);
    return lib;
}
