/* libam: translation tables. */

#include "am_calls.h"

void publish(unsigned at, const en_t *name) {
    memcpy(board->entries[process][at], name, sizeof *name);
}

static en_t a_name(void) {
    int of = NOW && processes == 2 && one_in(2) ? !process : process;
    en_t name;

    memcpy(&name, board->entries[of][below(PLACES)], sizeof name);
    if (one_in(60))
        ((unsigned char *)&name)[below(sizeof name < 16 ? sizeof name : 16)] ^= (unsigned char)draw();
    return name;
}

void map(endpoint_t endpoint, int at) {
    en_t name = a_name();
    tag_t tag = one_in(30) ? draw() : AM_ALL - 1;
    int any;

#if NOW
    if (one_in(8))
        AM(MapAny, endpoint, &any, one_in(100) ? NULL : &name, tag);
    else
        AM(Map, endpoint, at, one_in(100) ? NULL : &name, tag);
#else
    if (one_in(8))
        AM(MapAny, endpoint, &any, name, tag);
    else
        AM(Map, endpoint, at, name, tag);
#endif
}

void change_map(void) {
    endpoint_t endpoint = an_endpoint();
    int at = an_index(), count;

    switch (below(6)) {
    case 0:
        AM(UnMap, endpoint, at);
        break;
    case 1:
        AM(SetNumTranslations, endpoint, one_in(20) ? (int)draw() % 4096 : TABLE + (int)below(8));
        break;
    case 2:
        AM(SetExpectedResources, endpoint, (int)below(9), (int)below(9));
        break;
    case 3:
        AM(GetNumTranslations, endpoint, one_in(100) ? NULL : &count);
        break;
    default:
        AM(UnMap, endpoint, at);
        map(endpoint, at);
    }
}

void ask_map(void) {
    endpoint_t endpoint = an_endpoint();
    int at = an_index(), count;
    tag_t tag;
    uintptr_t bytes;
#if NOW
    en_t *name;
#else
    en_t name = a_name();
#endif

    AM(GetTranslationInuse, endpoint, at);
    AM(GetTranslationTag, endpoint, at, one_in(100) ? NULL : &tag);
    AM(GetTranslationName, endpoint, at, &name);
    AM(MaxNumTranslations, &count);
    AM(MaxSegLength, &bytes);
#if !NOW
    CALL_GOOD(enEqual, result_ != 0, NAME(enEqual)(name, name));
    if (one_in(4))
        AM(SetTranslationTag, endpoint, at, AM_ALL - 1);
#endif
}
