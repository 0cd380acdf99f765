/* setting.def with the macros that are defined before it is included; the others give nothing. For
 * settings.h and settings.c. */
#ifndef OPTION
#define OPTION(id, kind, releases, default_5_0, default_3_11, least, most, read, range, api)
#endif
#ifndef PROPERTY
#define PROPERTY(id, name, kind, words, least, most, otherwise, api)
#endif
#ifndef STAMP
#define STAMP(id, name, kind, api)
#endif
#ifndef SHOWN
#define SHOWN(id, name, kind, words, api)
#endif
#ifndef REGION
#define REGION(id, name, kind, words, least, most, otherwise, api)
#endif
#ifndef SCALING
#define SCALING(id, name, kind, words, least, most, otherwise, api)
#endif
#ifndef TARGET
#define TARGET(id, name, kind)
#endif
#ifndef TAGS
#define TAGS(id, name, kind)
#endif
#ifndef KEPT
#define KEPT(id, name, kind)
#endif
#include "settings/setting.def"
#undef OPTION
#undef PROPERTY
#undef STAMP
#undef SHOWN
#undef REGION
#undef SCALING
#undef TARGET
#undef TAGS
#undef KEPT
