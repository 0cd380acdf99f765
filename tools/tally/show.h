/* Output that tally prints to a person. Names, statements and texts come from clients of the server, and
 * their bytes must not control the terminal of the operator who reads them.
 *
 * show_open replaces stdout and stderr, so that everything printed passes through one function. It
 * writes control characters (all but newline and tab), C1 controls and the characters that change
 * the direction of text as \u and four digits, which JSON reads as the same character, and invalid
 * UTF-8 as U+FFFD. Sequences of tally's own for the terminal go to show_raw.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum { SHOW_LINE_MAX = 4096 }; /* bytes of a line that a terminal is shown */

/* Called once, before anything is printed. data: the output is data, such as rows: it is filtered
 * on a terminal only, and its lines are not cut. Does nothing when there is no memory. */
void show_open(bool data);
/* The unfiltered stream of stdout or stderr, after the bytes printed so far. */
FILE *show_raw(FILE *stream);
