/* The shapes of requests (shape.def), and whether a document has the shape that its operation asks for. */
#pragma once

#include "control_plane/document.h"

enum shape_id {
#define TEXT(name, ...) SHAPE_##name,
#define ENUM(name, ...) SHAPE_##name,
#define NUMBER(name, ...) SHAPE_##name,
#define FLAG(name) SHAPE_##name,
#define MOMENT(name) SHAPE_##name,
#define LIST(name, ...) SHAPE_##name,
#define DICTIONARY(name, ...) SHAPE_##name,
#define STRUCTURE(name) SHAPE_##name,
#include "control_plane/shape.def"
    SHAPES
};

enum shape_verdict { SHAPE_FITS, SHAPE_OF_OTHER_KIND, SHAPE_INVALID };

/* Of a form, where everything is text (query.c): texts become what the shape has in their place,
 * where they can be read as that, and what is numbered a list. */
void shape_settle_texts(enum shape_id shape, struct doc *d);

/* OF_OTHER_KIND: a member is no text, number or whatever it should be: the body's form is wrong.
 * INVALID: every breach of the model's constraints is listed in the words of AWS's services: "1
 * validation error detected: Value '' at 'keyspaceName' failed to satisfy constraint: ...". Members
 * that the model does not have are passed over, as AWS's services do. */
enum shape_verdict shape_check(enum shape_id shape, const struct doc *d, struct err *e) MUST_CHECK;
