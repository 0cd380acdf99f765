/* The shapes of requests (shape.def), and the check that a document has its operation's shape. */
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

/* For a form, in which all values are texts (form.h): turns texts into the numbers, flags and
 * moments that the shape has in their place, if they can be parsed so, and numbered entries into
 * lists. */
void shape_convert_texts(enum shape_id shape, struct doc *d);

/* OF_OTHER_KIND: a member has another kind than the model, such as a number instead of a text.
 * INVALID: e lists the breaches of the model's constraints in the words of AWS's services: "1
 * validation error detected: Value '' at 'keyspaceName' failed to satisfy constraint: ...". Members
 * that the model does not have are ignored, as AWS's services do. */
enum shape_verdict shape_check(enum shape_id shape, const struct doc *d, struct err *e) MUST_CHECK;
