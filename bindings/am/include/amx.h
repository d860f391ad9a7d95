/*
 * Active Messages II: what amudp.h and ammpi.h have in common. Programs include one of those, which
 * define AMX_DIALECT and en_t.
 *
 * Every call returns AM_OK or a code. docs/design/libam.md has what the specification leaves open.
 */

#ifndef CCI_AMX_H
#define CCI_AMX_H

#ifndef AMX_DIALECT
#error "include amudp.h or ammpi.h"
#endif

#include "am_base.h"
#include "amx_const.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define AMX_PASTE_(prefix, name) prefix##name
#define AMX_PASTE(prefix, name) AMX_PASTE_(prefix, name)
/* A symbol of the library, which carries the prefix of the dialect. */
#define AMX_NAME(name) AMX_PASTE(AMX_DIALECT, name)

#ifdef __cplusplus
extern "C" {
#endif

/* Types ---------------------------------------------------------------------------------------- */

typedef struct cci_am_endpoint *ep_t;

/* A handler of any type: cast to one of those below where it is called. */
typedef void (*amx_handler_fn_t)(void);

/*
 * Handlers have one of these types, with 0 to 16 arguments; buffers of mediums are aligned to 8:
 *
 *     void short_handler(void *token, int32_t a0, ...);
 *     void medium_or_long_handler(void *token, void *buffer, size_t bytes, int32_t a0, ...);
 *     void handler_0(int status, op_t opcode, void *argblock);
 */

enum {
    AM_OK = 0,
    AM_ERR_NOT_INIT = 1,
    AM_ERR_BAD_ARG = 2,
    AM_ERR_RESOURCE = 3,
    AM_ERR_NOT_SENT = 4,
    AM_ERR_IN_USE = 5
};

/* The status that handler 0 gets. */
enum {
    EBADARGS = 1,
    EBADENTRY = 2,
    EBADTAG = 3,
    EBADHANDLER = 4,
    EBADSEGOFF = 5,
    EBADLENGTH = 6,
    EBADENDPOINT = 7,
    ECONGESTION = 8,
    EUNREACHABLE = 9,
    EREPLYREJECTED = 10
};

typedef enum { amx_Short = 0, amx_Medium = 1, amx_Long = 2, amx_NumCategories = 3 } amx_category_t;

/* What handler 0 gets as argblock: also a token. */
typedef struct {
    int32_t arguments[16];
} amx_argblock_t;

/* Counts since the endpoint was made or the last reset, by amx_category_t. */
typedef struct {
    uint64_t RequestsSent[3];
    uint64_t RepliesSent[3];
    uint64_t RequestsReceived[3];
    uint64_t RepliesReceived[3];
    uint64_t RequestDataBytesSent[3];
    uint64_t ReplyDataBytesSent[3];
    uint64_t ReturnedMessages;
} amx_stats_t;

/* Limits; amx_const.h has those that are constants --------------------------------------------- */

#define AM_MaxNumTranslations AMX_NAME(MaxNumTranslations)
#define AM_MaxSegLength AMX_NAME(MaxSegLength)
int AMX_NAME(MaxNumTranslations)(int *count);
int AMX_NAME(MaxSegLength)(uintptr_t *bytes);

/* Life ----------------------------------------------------------------------------------------- */

#define AM_Init AMX_NAME(Init)
#define AM_Terminate AMX_NAME(Terminate)
#define AM_AllocateBundle AMX_NAME(AllocateBundle)
#define AM_AllocateEndpoint AMX_NAME(AllocateEndpoint)
#define AM_FreeBundle AMX_NAME(FreeBundle)
#define AM_FreeEndpoint AMX_NAME(FreeEndpoint)
#define AM_MoveEndpoint AMX_NAME(MoveEndpoint)
int AMX_NAME(Init)(void);
int AMX_NAME(Terminate)(void);
int AMX_NAME(AllocateBundle)(int type, eb_t *bundle);
int AMX_NAME(AllocateEndpoint)(eb_t bundle, ep_t *endpoint, en_t *name);
int AMX_NAME(FreeBundle)(eb_t bundle);
int AMX_NAME(FreeEndpoint)(ep_t endpoint);
int AMX_NAME(MoveEndpoint)(ep_t endpoint, eb_t from, eb_t to);

/* Segment and tag ------------------------------------------------------------------------------ */

#define AM_SetSeg AMX_NAME(SetSeg)
#define AM_GetSeg AMX_NAME(GetSeg)
#define AM_SetTag AMX_NAME(SetTag)
#define AM_GetTag AMX_NAME(GetTag)
/* NULL and AMX_MAX_SEGLENGTH: the whole address space, where offsets are addresses. */
int AMX_NAME(SetSeg)(ep_t endpoint, void *start, uintptr_t bytes);
int AMX_NAME(GetSeg)(ep_t endpoint, void **start, uintptr_t *bytes);
int AMX_NAME(SetTag)(ep_t endpoint, tag_t tag);
int AMX_NAME(GetTag)(ep_t endpoint, tag_t *tag);

/* Translations --------------------------------------------------------------------------------- */

#define AM_Map AMX_NAME(Map)
#define AM_MapAny AMX_NAME(MapAny)
#define AM_UnMap AMX_NAME(UnMap)
#define AM_GetTranslationInuse AMX_NAME(GetTranslationInuse)
#define AM_GetTranslationTag AMX_NAME(GetTranslationTag)
#define AM_GetTranslationName AMX_NAME(GetTranslationName)
#define AM_GetNumTranslations AMX_NAME(GetNumTranslations)
#define AM_SetNumTranslations AMX_NAME(SetNumTranslations)
#define AM_SetExpectedResources AMX_NAME(SetExpectedResources)
#define AMX_SetTranslationTag AMX_NAME(SetTranslationTag)
#define AMX_enEqual AMX_NAME(enEqual)
int AMX_NAME(Map)(ep_t endpoint, int index, en_t name, tag_t tag);
int AMX_NAME(MapAny)(ep_t endpoint, int *index, en_t name, tag_t tag);
int AMX_NAME(UnMap)(ep_t endpoint, int index);
/* AM_OK where the entry is in use, AM_ERR_RESOURCE where it is free. */
int AMX_NAME(GetTranslationInuse)(ep_t endpoint, int index);
int AMX_NAME(GetTranslationTag)(ep_t endpoint, int index, tag_t *tag);
int AMX_NAME(GetTranslationName)(ep_t endpoint, int index, en_t *name);
int AMX_NAME(GetNumTranslations)(ep_t endpoint, int *count);
int AMX_NAME(SetNumTranslations)(ep_t endpoint, int count);
int AMX_NAME(SetExpectedResources)(ep_t endpoint, int endpoints, int outstanding);
int AMX_NAME(SetTranslationTag)(ep_t endpoint, int index, tag_t tag);
/* Whether two names are of one endpoint: not a code. */
int AMX_NAME(enEqual)(en_t one, en_t other);

/* Handlers ------------------------------------------------------------------------------------- */

/* Any function type is taken, as handlers of Active Messages have many. */
#define AM_SetHandler(endpoint, handler, function) AMX_NAME(SetHandler)(endpoint, handler, (void (*)(void))(function))
#define AM_SetHandlerAny(endpoint, handler, function)                                                                  \
    AMX_NAME(SetHandlerAny)(endpoint, handler, (void (*)(void))(function))
#define AM_GetNumHandlers AMX_NAME(GetNumHandlers)
#define AM_SetNumHandlers AMX_NAME(SetNumHandlers)
int AMX_NAME(SetHandler)(ep_t endpoint, handler_t handler, void (*function)(void));
int AMX_NAME(SetHandlerAny)(ep_t endpoint, handler_t *handler, void (*function)(void));
int AMX_NAME(GetNumHandlers)(ep_t endpoint, int *count);
int AMX_NAME(SetNumHandlers)(ep_t endpoint, int count);

/*
 * Functions that run before and after each handler, or NULL. The arguments are read alone; programs
 * written for the interface take them so.
 */
typedef void (*amx_before_handler_t)(amx_category_t category, int is_request, int handler, void *token, void *buffer,
                                     size_t bytes, int count, uint32_t *arguments);
typedef void (*amx_after_handler_t)(amx_category_t category, int is_request);
#define AMX_SetHandlerCallbacks AMX_NAME(SetHandlerCallbacks)
int AMX_NAME(SetHandlerCallbacks)(ep_t endpoint, amx_before_handler_t before, amx_after_handler_t after);

/* Events --------------------------------------------------------------------------------------- */

#define AM_Poll AMX_NAME(Poll)
#define AM_GetEventMask AMX_NAME(GetEventMask)
#define AM_SetEventMask AMX_NAME(SetEventMask)
#define AM_WaitSema AMX_NAME(WaitSema)
int AMX_NAME(Poll)(eb_t bundle);
int AMX_NAME(GetEventMask)(eb_t bundle, int *mask);
int AMX_NAME(SetEventMask)(eb_t bundle, int mask);
int AMX_NAME(WaitSema)(eb_t bundle);

/* Tokens --------------------------------------------------------------------------------------- */

#define AM_GetSourceEndpoint AMX_NAME(GetSourceEndpoint)
#define AM_GetDestEndpoint AMX_NAME(GetDestEndpoint)
#define AM_GetMsgTag AMX_NAME(GetMsgTag)
#define AMX_GetSourceId AMX_NAME(GetSourceId)
#define AMX_GetTokenInfo AMX_NAME(GetTokenInfo)
int AMX_NAME(GetSourceEndpoint)(void *token, en_t *name);
int AMX_NAME(GetDestEndpoint)(void *token, ep_t *endpoint);
int AMX_NAME(GetMsgTag)(void *token, tag_t *tag);
/* The lowest index at which the source is mapped; AM_ERR_RESOURCE where it is not. */
int AMX_NAME(GetSourceId)(void *token, int *index);
int AMX_NAME(GetTokenInfo)(void *token, handler_t *handler, amx_category_t *category, int *is_request);

/* Messages, their arguments in an array -------------------------------------------------------- */

int AMX_NAME(Request)(ep_t endpoint, int target, handler_t handler, int count, const int32_t *arguments);
int AMX_NAME(RequestI)(ep_t endpoint, int target, handler_t handler, const void *source, size_t bytes, int count,
                       const int32_t *arguments);
int AMX_NAME(RequestXfer)(ep_t endpoint, int target, uintptr_t offset, handler_t handler, const void *source,
                          size_t bytes, int is_async, int count, const int32_t *arguments);
int AMX_NAME(GetXfer)(ep_t endpoint, int target, uintptr_t source_offset, handler_t handler, uintptr_t offset,
                      size_t bytes, int is_async, int count, const int32_t *arguments);
int AMX_NAME(Reply)(void *token, handler_t handler, int count, const int32_t *arguments);
int AMX_NAME(ReplyI)(void *token, handler_t handler, const void *source, size_t bytes, int count,
                     const int32_t *arguments);
int AMX_NAME(ReplyXfer)(void *token, uintptr_t offset, handler_t handler, const void *source, size_t bytes, int count,
                        const int32_t *arguments);

/*
 * Those with their arguments in a va_list. The forms of Xfer take the offset behind the bytes, as
 * programs written for the interface pass it.
 */

/* The most arguments that the forms with a va_list take from it. */
static inline const int32_t *AMX_NAME(take_arguments)(int32_t *into, int count, va_list list)
{
    int at;
    for (at = 0; at < count && at < 16; at++) {
        into[at] = (int32_t)va_arg(list, int);
    }
    return into;
}

static inline int AMX_NAME(RequestVA)(ep_t endpoint, int target, handler_t handler, int count, va_list list)
{
    int32_t a[16];
    return AMX_NAME(Request)(endpoint, target, handler, count, AMX_NAME(take_arguments)(a, count, list));
}

static inline int AMX_NAME(RequestIVA)(ep_t endpoint, int target, handler_t handler, const void *source, size_t bytes,
                                       int count, va_list list)
{
    int32_t a[16];
    return AMX_NAME(RequestI)(endpoint, target, handler, source, bytes, count, AMX_NAME(take_arguments)(a, count, list));
}

static inline int AMX_NAME(RequestXferVA)(ep_t endpoint, int target, handler_t handler, const void *source,
                                          size_t bytes, uintptr_t offset, int is_async, int count, va_list list)
{
    int32_t a[16];
    return AMX_NAME(RequestXfer)(endpoint, target, offset, handler, source, bytes, is_async, count,
                                 AMX_NAME(take_arguments)(a, count, list));
}

static inline int AMX_NAME(ReplyVA)(void *token, handler_t handler, int count, va_list list)
{
    int32_t a[16];
    return AMX_NAME(Reply)(token, handler, count, AMX_NAME(take_arguments)(a, count, list));
}

static inline int AMX_NAME(ReplyIVA)(void *token, handler_t handler, const void *source, size_t bytes, int count,
                                     va_list list)
{
    int32_t a[16];
    return AMX_NAME(ReplyI)(token, handler, source, bytes, count, AMX_NAME(take_arguments)(a, count, list));
}

static inline int AMX_NAME(ReplyXferVA)(void *token, handler_t handler, const void *source, size_t bytes,
                                        uintptr_t offset, int count, va_list list)
{
    int32_t a[16];
    return AMX_NAME(ReplyXfer)(token, offset, handler, source, bytes, count, AMX_NAME(take_arguments)(a, count, list));
}

#define AMX_RequestVA AMX_NAME(RequestVA)
#define AMX_RequestIVA AMX_NAME(RequestIVA)
#define AMX_RequestXferVA AMX_NAME(RequestXferVA)
#define AMX_ReplyVA AMX_NAME(ReplyVA)
#define AMX_ReplyIVA AMX_NAME(ReplyIVA)
#define AMX_ReplyXferVA AMX_NAME(ReplyXferVA)

/* Messages with 0 to 16 arguments -------------------------------------------------------------- */

#define AMX_P0
#define AMX_P1 , int32_t a0
#define AMX_P2 AMX_P1, int32_t a1
#define AMX_P3 AMX_P2, int32_t a2
#define AMX_P4 AMX_P3, int32_t a3
#define AMX_P5 AMX_P4, int32_t a4
#define AMX_P6 AMX_P5, int32_t a5
#define AMX_P7 AMX_P6, int32_t a6
#define AMX_P8 AMX_P7, int32_t a7
#define AMX_P9 AMX_P8, int32_t a8
#define AMX_P10 AMX_P9, int32_t a9
#define AMX_P11 AMX_P10, int32_t a10
#define AMX_P12 AMX_P11, int32_t a11
#define AMX_P13 AMX_P12, int32_t a12
#define AMX_P14 AMX_P13, int32_t a13
#define AMX_P15 AMX_P14, int32_t a14
#define AMX_P16 AMX_P15, int32_t a15

#define AMX_V0 0
#define AMX_V1 a0
#define AMX_V2 AMX_V1, a1
#define AMX_V3 AMX_V2, a2
#define AMX_V4 AMX_V3, a3
#define AMX_V5 AMX_V4, a4
#define AMX_V6 AMX_V5, a5
#define AMX_V7 AMX_V6, a6
#define AMX_V8 AMX_V7, a7
#define AMX_V9 AMX_V8, a8
#define AMX_V10 AMX_V9, a9
#define AMX_V11 AMX_V10, a10
#define AMX_V12 AMX_V11, a11
#define AMX_V13 AMX_V12, a12
#define AMX_V14 AMX_V13, a13
#define AMX_V15 AMX_V14, a14
#define AMX_V16 AMX_V15, a15

#define AMX_FORMS(M)                                                                                                   \
    static inline int AM_Request##M(ep_t endpoint, int target, handler_t handler AMX_P##M)                             \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(Request)(endpoint, target, handler, M, a);                                                     \
    }                                                                                                                  \
    static inline int AM_RequestI##M(ep_t endpoint, int target, handler_t handler, const void *source,                 \
                                     size_t bytes AMX_P##M)                                                            \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(RequestI)(endpoint, target, handler, source, bytes, M, a);                                     \
    }                                                                                                                  \
    static inline int AM_RequestXfer##M(ep_t endpoint, int target, uintptr_t offset, handler_t handler,                \
                                        const void *source, size_t bytes AMX_P##M)                                     \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(RequestXfer)(endpoint, target, offset, handler, source, bytes, 0, M, a);                       \
    }                                                                                                                  \
    static inline int AM_RequestXferAsync##M(ep_t endpoint, int target, uintptr_t offset, handler_t handler,           \
                                             const void *source, size_t bytes AMX_P##M)                                \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(RequestXfer)(endpoint, target, offset, handler, source, bytes, 1, M, a);                       \
    }                                                                                                                  \
    static inline int AM_GetXfer##M(ep_t endpoint, int target, uintptr_t source_offset, handler_t handler,             \
                                    uintptr_t offset, size_t bytes AMX_P##M)                                           \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(GetXfer)(endpoint, target, source_offset, handler, offset, bytes, 0, M, a);                    \
    }                                                                                                                  \
    static inline int AM_Reply##M(void *token, handler_t handler AMX_P##M)                                             \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(Reply)(token, handler, M, a);                                                                  \
    }                                                                                                                  \
    static inline int AM_ReplyI##M(void *token, handler_t handler, const void *source, size_t bytes AMX_P##M)          \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(ReplyI)(token, handler, source, bytes, M, a);                                                  \
    }                                                                                                                  \
    static inline int AM_ReplyXfer##M(void *token, uintptr_t offset, handler_t handler, const void *source,            \
                                      size_t bytes AMX_P##M)                                                           \
    {                                                                                                                  \
        const int32_t a[] = {AMX_V##M};                                                                                \
        return AMX_NAME(ReplyXfer)(token, offset, handler, source, bytes, M, a);                                       \
    }

AMX_FORMS(0)
AMX_FORMS(1)
AMX_FORMS(2)
AMX_FORMS(3)
AMX_FORMS(4)
AMX_FORMS(5)
AMX_FORMS(6)
AMX_FORMS(7)
AMX_FORMS(8)
AMX_FORMS(9)
AMX_FORMS(10)
AMX_FORMS(11)
AMX_FORMS(12)
AMX_FORMS(13)
AMX_FORMS(14)
AMX_FORMS(15)
AMX_FORMS(16)

/* Statistics and errors ------------------------------------------------------------------------ */

#define AMX_GetEndpointStatistics AMX_NAME(GetEndpointStatistics)
#define AMX_ResetEndpointStatistics AMX_NAME(ResetEndpointStatistics)
#define AMX_AggregateStatistics AMX_NAME(AggregateStatistics)
#define AMX_DumpStatistics AMX_NAME(DumpStatistics)
#define AMX_initial_stats AMX_NAME(initial_stats)
#define AMX_VerboseErrors AMX_NAME(VerboseErrors)
#define AMX_PoliteSync AMX_NAME(PoliteSync)
#define AMX_SetSendTimeout AMX_NAME(SetSendTimeout)
int AMX_NAME(GetEndpointStatistics)(ep_t endpoint, amx_stats_t *stats);
int AMX_NAME(ResetEndpointStatistics)(ep_t endpoint);
int AMX_NAME(AggregateStatistics)(amx_stats_t *sum, const amx_stats_t *more);
/* How long a target may not answer before its requests come back, in milliseconds, at least 8: for
 * endpoints allocated later. 30,000 at first. */
int AMX_NAME(SetSendTimeout)(uint32_t milliseconds);
extern const amx_stats_t AMX_NAME(initial_stats);
/* Not 0: each refused call writes a line to standard error. */
extern int AMX_NAME(VerboseErrors);
/* Read by nobody: waits of this library sleep after they have polled for a short time. */
extern int AMX_NAME(PoliteSync);

/*
 * The counts as text, of at most 1,000 bytes, which the next call of this source file overwrites;
 * written to `file` too, unless that is NULL. `is_global` only changes the heading. NULL where
 * `stats` is.
 */
static inline const char *AMX_NAME(DumpStatistics)(FILE *file, const amx_stats_t *stats, int is_global)
{
    static const char *const names[3] = {"short", "medium", "long"};
    static char text[1000];
    size_t length;
    int at;
    if (!stats) {
        return NULL;
    }
    length = (size_t)snprintf(text, sizeof text, "Active Messages of %s: %llu came back\n",
                              is_global ? "all endpoints" : "an endpoint", (unsigned long long)stats->ReturnedMessages);
    /* At most 20 digits a number: all of it has room. */
    for (at = 0; at < 3; at++) {
        length += (size_t)snprintf(
            text + length, sizeof text - length,
            "  %-6s  requests %llu sent, %llu received; replies %llu sent, %llu received\n", names[at],
            (unsigned long long)stats->RequestsSent[at], (unsigned long long)stats->RequestsReceived[at],
            (unsigned long long)stats->RepliesSent[at], (unsigned long long)stats->RepliesReceived[at]);
    }
    if (file) {
        fputs(text, file);
    }
    return text;
}

/* Writes a message and ends the process by abort(). */
#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
static inline void AMX_NAME(FatalErr)(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    abort();
}
#define AMX_FatalErr AMX_NAME(FatalErr)

#ifdef __cplusplus
}
#endif

#endif /* CCI_AMX_H */
