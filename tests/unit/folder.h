/* A temporary folder of a test. Include it after cmocka.h. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDER_PATH = 64 };

/* Makes a folder, and puts its path in path. */
static inline void folder_make(char path[FOLDER_PATH]) {
    strcpy(path, "/tmp/tally-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static inline void folder_remove(const char *path) {
    char command[FOLDER_PATH + 16];
    snprintf(command, sizeof(command), "rm -rf %s", path);
    assert_int_equal(system(command), 0);
}
