/* Amazon Keyspaces' control plane: the HTTP interface that SDKs, the AWS CLI and Terraform call,
 * over the same catalogue as CQL; and, of the services beside it (service.def), CloudWatch's
 * metrics and Application Auto Scaling's targets and policies.
 *
 * Life of a request: http/listener.h reads it; control_plane.c finds protocol, service and
 * operation (Smithy RPC v2 CBOR by its path, AWS JSON by X-Amz-Target, forms of the query protocol
 * by their Action), checks the signature where logins are asked for (signature.h), reads the body
 * into a document and looks whether it has the operation's shape (shape.def); the operation
 * (operation.def) reads the schema's snapshot, or makes the tree of the CQL statement that does the
 * same and runs that (tree.h): so what is allowed, when it is ACTIVE, and what it looks like is one
 * and the same thing. Metrics are the server's ledger's (metric.h). Requests run one at a time.
 */
#pragma once

#include "control_plane/options.h"

struct control_plane;

/* *out is NULL when both ports are off. */
int control_plane_start(struct control_plane **out, const struct control_plane_options *o, struct err *e) MUST_CHECK;
void control_plane_stop(struct control_plane *c);
/* Connections to the TLS port from now on get the certificate that its files hold. -1: they are of
 * no use, and it stays as it was. c may be NULL. */
int control_plane_reload_certificate(struct control_plane *c, struct err *e) MUST_CHECK;
/* No request runs until control_plane_go_on: those that come wait. c may be NULL. */
void control_plane_pause(struct control_plane *c);
void control_plane_go_on(struct control_plane *c);
