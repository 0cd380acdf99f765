/* Runs a fuzzer's entry point over every file of the given folders: the corpus as an ordinary test. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return perror(path), -1;
    uint8_t *data = NULL;
    size_t n = 0, cap = 0, got;
    do {
        if (n == cap) data = realloc(data, cap = cap ? cap * 2 : 4096);
        if (!data) abort();
        got = fread(data + n, 1, cap - n, f);
        n += got;
    } while (got);
    fclose(f);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 0;
}

int main(int argc, char **argv) {
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        if (!d) return perror(argv[i]), 1;
        for (struct dirent *e; (e = readdir(d));) {
            char path[PATH_MAX];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
            if (run_file(path)) return 1;
            files++;
        }
        closedir(d);
    }
    printf("%d files\n", files);
    return files ? 0 : 1; /* an empty corpus proves nothing */
}
