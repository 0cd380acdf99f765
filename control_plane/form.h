/* AWS's query protocol, which older clients of CloudWatch use: a request is a form, an answer is
 * XML (https://smithy.io/2.0/aws/protocols/aws-query-protocol.html).
 *
 *   Action=GetMetricStatistics&Version=2010-08-01&Dimensions.member.1.Name=Keyspace
 *   &Dimensions.member.1.Value=shop
 *
 * becomes {"Dimensions": {"member": {"1": {"Name": "Keyspace", "Value": "shop"}}}, ...}. All values
 * are texts; shape_convert_texts then makes the numbers and lists that the operation's shape asks
 * for.
 */
#pragma once

#include "control_plane/document.h"

/* NULL and ERR_INVALID: the form cannot be parsed, or has too many entries. Numbered entries are in
 * the order of their numbers. */
struct doc *form_read(struct arena *a, struct slice body, struct err *e) MUST_CHECK;
/* The value of an entry of that name, copied with a NUL; NULL if there is no such entry. */
const char *form_find(struct arena *a, struct slice body, const char *name);

void form_write_answer(const struct doc *d, const char *xmlns, const char *operation, const char *request_id,
                       struct buf *out);
void form_write_error(const char *xmlns, bool of_sender, const char *code, const char *message, const char *request_id,
                      struct buf *out);
