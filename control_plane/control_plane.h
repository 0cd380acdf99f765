/* Amazon Keyspaces' control plane: the HTTP interface that SDKs, the AWS CLI and Terraform call. It
 * works on the same catalogue as CQL. It also serves parts of two other services (service.def):
 * CloudWatch's metrics, and Application Auto Scaling's targets and policies.
 *
 * Life of a request: server/http/listener.h reads it. control_plane.c finds the protocol, the service
 * and the operation: Smithy RPC v2 CBOR by its path, AWS JSON by X-Amz-Target, a form of the
 * query protocol by its Action. It checks the signature, when the server asks for logins
 * (signature.h), reads the body into a document and checks the document against the operation's
 * shape (shape.def). The operation (operation.def) then reads a snapshot of the schema; or it
 * makes the syntax tree of the equivalent CQL statement and runs that (tree.h), so that
 * permissions, statuses and results are the same as in CQL. Metrics come from the server's
 * ledger (metric.h). Requests run one at a time.
 */
#pragma once

#include "control_plane/options.h"

struct control_plane;

/* *out is NULL when both ports are off. */
int control_plane_start(struct control_plane **out, const struct control_plane_options *o, struct err *e) MUST_CHECK;
void control_plane_stop(struct control_plane *c);
/* Reads the certificate's files again; new connections to the TLS port use the result. Returns -1
 * if the files cannot be read or do not fit, and the current certificate stays. c may be NULL. */
int control_plane_reload_certificate(struct control_plane *c, struct err *e) MUST_CHECK;
/* Waits for the running request. Later requests wait until control_plane_continue. c may be NULL. */
void control_plane_pause(struct control_plane *c);
void control_plane_continue(struct control_plane *c);
