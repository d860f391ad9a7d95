/*
 * Active Messages as of the NOW project, 1996: messages of 4 and 8 arguments, names by pointer.
 * `pkg-config --cflags --libs am`. Another dialect cannot be included beside it.
 *
 * Every call returns AM_OK or a code. docs/design/libam.md has what the specification leaves open.
 */

#ifndef CCI_AM_H
#define CCI_AM_H

#ifdef AMX_DIALECT
#error "amudp.h or ammpi.h is included already; one source has one dialect"
#endif
#define AMX_DIALECT AMNOW_

#include "am_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cci_am_endpoint *ea_t;

/* The name of an endpoint: a value that may be copied to other processes. */
typedef struct {
    uint32_t process;
    uint32_t number;
    uint32_t host;
    uint32_t check;
    char uri[144];
} en_t;

/*
 * Handlers have one of these types, with 4 or 8 arguments; buffers of mediums are aligned to 8:
 *
 *     void short_handler(void *token, int a0, int a1, int a2, int a3);
 *     void medium_or_long_handler(void *token, void *buffer, size_t bytes, int a0, ...);
 *     void handler_0(int status, op_t opcode, void *argblock);
 */

enum {
    AM_OK = 0,
    AM_ERR_NOT_INIT = 1,
    AM_ERR_NOT_TERM = 2,
    AM_ERR_BAD_ARG = 3,
    AM_ERR_RESOURCE = 4,
    AM_ERR_NOT_SENT = 5,
    AM_ERR_IN_USE = 6
};

/* The status that handler 0 gets: bits. */
enum {
    EBADARGS = 0x001,
    EBADENTRY = 0x002,
    EBADTAG = 0x004,
    EBADHANDLER = 0x008,
    EBADSEGOFF = 0x010,
    EBADLENGTH = 0x020,
    EBADENDPOINT = 0x040,
    ECONGESTION = 0x080,
    EUNREACHABLE = 0x100,
    EREPLYREJECTED = 0x200
};

#define AM_MaxShort() 8
#define AM_MaxMedium() 65000
#define AM_MaxLong() 65000
#define AM_MaxNumHandlers() 256

#define AM_Init AMNOW_Init
#define AM_Terminate AMNOW_Terminate
#define AM_AllocateBundle AMNOW_AllocateBundle
#define AM_AllocateEndpoint AMNOW_AllocateEndpoint
#define AM_FreeBundle AMNOW_FreeBundle
#define AM_FreeEndpoint AMNOW_FreeEndpoint
#define AM_MoveEndpoint AMNOW_MoveEndpoint
/* AM_ERR_NOT_TERM where it was called before, without AM_Terminate since. */
int AMNOW_Init(void);
int AMNOW_Terminate(void);
int AMNOW_AllocateBundle(int type, eb_t *bundle);
/* The name is the library's, until the endpoint is freed. */
int AMNOW_AllocateEndpoint(eb_t bundle, ea_t *endpoint, en_t **name);
int AMNOW_FreeBundle(eb_t bundle);
int AMNOW_FreeEndpoint(ea_t endpoint);
int AMNOW_MoveEndpoint(ea_t endpoint, eb_t from, eb_t to);

#define AM_SetSeg AMNOW_SetSeg
#define AM_GetSeg AMNOW_GetSeg
#define AM_MaxSegLength AMNOW_MaxSegLength
#define AM_SetTag AMNOW_SetTag
#define AM_GetTag AMNOW_GetTag
int AMNOW_SetSeg(ea_t endpoint, void *start, uintptr_t bytes);
int AMNOW_GetSeg(ea_t endpoint, void **start, uintptr_t *bytes);
int AMNOW_MaxSegLength(uintptr_t *bytes);
int AMNOW_SetTag(ea_t endpoint, tag_t tag);
int AMNOW_GetTag(ea_t endpoint, tag_t *tag);

#define AM_Map AMNOW_Map
#define AM_MapAny AMNOW_MapAny
#define AM_UnMap AMNOW_UnMap
#define AM_GetTranslationInuse AMNOW_GetTranslationInuse
#define AM_GetTranslationTag AMNOW_GetTranslationTag
#define AM_GetTranslationName AMNOW_GetTranslationName
#define AM_GetNumTranslations AMNOW_GetNumTranslations
#define AM_SetNumTranslations AMNOW_SetNumTranslations
#define AM_MaxNumTranslations AMNOW_MaxNumTranslations
#define AM_SetExpectedResources AMNOW_SetExpectedResources
int AMNOW_Map(ea_t endpoint, int index, const en_t *name, tag_t tag);
int AMNOW_MapAny(ea_t endpoint, int *index, const en_t *name, tag_t tag);
int AMNOW_UnMap(ea_t endpoint, int index);
int AMNOW_GetTranslationInuse(ea_t endpoint, int index);
int AMNOW_GetTranslationTag(ea_t endpoint, int index, tag_t *tag);
/* The name is the library's, until the next call of this function for the endpoint. */
int AMNOW_GetTranslationName(ea_t endpoint, int index, en_t **name);
int AMNOW_GetNumTranslations(ea_t endpoint, int *count);
int AMNOW_SetNumTranslations(ea_t endpoint, int count);
int AMNOW_MaxNumTranslations(int *count);
int AMNOW_SetExpectedResources(ea_t endpoint, int endpoints, int outstanding);

#define AM_SetHandler(endpoint, handler, function) AMNOW_SetHandler(endpoint, handler, (void (*)(void))(function))
#define AM_SetHandlerAny(endpoint, handler, function)                                                                  \
    AMNOW_SetHandlerAny(endpoint, handler, (void (*)(void))(function))
#define AM_GetNumHandlers AMNOW_GetNumHandlers
#define AM_SetNumHandlers AMNOW_SetNumHandlers
int AMNOW_SetHandler(ea_t endpoint, handler_t handler, void (*function)(void));
int AMNOW_SetHandlerAny(ea_t endpoint, handler_t *handler, void (*function)(void));
int AMNOW_GetNumHandlers(ea_t endpoint, int *count);
int AMNOW_SetNumHandlers(ea_t endpoint, int count);

#define AM_Poll AMNOW_Poll
#define AM_GetEventMask AMNOW_GetEventMask
#define AM_SetEventMask AMNOW_SetEventMask
#define AM_Wait AMNOW_Wait
int AMNOW_Poll(eb_t bundle);
/* The mask, not a code; AM_NOEVENTS for what is no bundle. */
int AMNOW_GetEventMask(eb_t bundle);
int AMNOW_SetEventMask(eb_t bundle, int mask);
int AMNOW_Wait(eb_t bundle);

#define AM_GetSourceEndpoint AMNOW_GetSourceEndpoint
#define AM_GetDestEndpoint AMNOW_GetDestEndpoint
#define AM_GetMsgTag AMNOW_GetMsgTag
/* The name is the library's, until the handler returns. */
int AMNOW_GetSourceEndpoint(void *token, en_t **name);
int AMNOW_GetDestEndpoint(void *token, ea_t *endpoint);
int AMNOW_GetMsgTag(void *token, tag_t *tag);

/* Messages, their arguments in an array. */
int AMNOW_Request(ea_t endpoint, int target, handler_t handler, int count, const int32_t *arguments);
int AMNOW_RequestI(ea_t endpoint, int target, handler_t handler, const void *source, size_t bytes, int count,
                   const int32_t *arguments);
int AMNOW_RequestXfer(ea_t endpoint, int target, uintptr_t offset, handler_t handler, const void *source, size_t bytes,
                      int is_async, int count, const int32_t *arguments);
int AMNOW_GetXfer(ea_t endpoint, int target, uintptr_t source_offset, handler_t handler, uintptr_t offset, size_t bytes,
                  int is_async, int count, const int32_t *arguments);
int AMNOW_Reply(void *token, handler_t handler, int count, const int32_t *arguments);
int AMNOW_ReplyI(void *token, handler_t handler, const void *source, size_t bytes, int count, const int32_t *arguments);
int AMNOW_ReplyXfer(void *token, uintptr_t offset, handler_t handler, const void *source, size_t bytes, int count,
                    const int32_t *arguments);

#define AMNOW_P4 int a0, int a1, int a2, int a3
#define AMNOW_P8 AMNOW_P4, int a4, int a5, int a6, int a7
#define AMNOW_V4 a0, a1, a2, a3
#define AMNOW_V8 AMNOW_V4, a4, a5, a6, a7

/* AM_GetXfer reads from the target's segment into that of `endpoint`, whose handler runs then. */
#define AMNOW_FORMS(M)                                                                                                 \
    static inline int AM_Request##M(ea_t endpoint, int target, handler_t handler, AMNOW_P##M)                          \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_Request(endpoint, target, handler, M, a);                                                         \
    }                                                                                                                  \
    static inline int AM_RequestI##M(ea_t endpoint, int target, handler_t handler, const void *source, size_t bytes,   \
                                     AMNOW_P##M)                                                                       \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_RequestI(endpoint, target, handler, source, bytes, M, a);                                         \
    }                                                                                                                  \
    static inline int AM_RequestXfer##M(ea_t endpoint, int target, uintptr_t offset, handler_t handler,                \
                                        const void *source, size_t bytes, AMNOW_P##M)                                  \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_RequestXfer(endpoint, target, offset, handler, source, bytes, 0, M, a);                           \
    }                                                                                                                  \
    static inline int AM_RequestXferAsynch##M(ea_t endpoint, int target, uintptr_t offset, handler_t handler,          \
                                              const void *source, size_t bytes, AMNOW_P##M)                            \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_RequestXfer(endpoint, target, offset, handler, source, bytes, 1, M, a);                           \
    }                                                                                                                  \
    static inline int AM_GetXfer##M(ea_t endpoint, int target, uintptr_t source_offset, handler_t handler,             \
                                    uintptr_t offset, size_t bytes, AMNOW_P##M)                                        \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_GetXfer(endpoint, target, source_offset, handler, offset, bytes, 0, M, a);                        \
    }                                                                                                                  \
    static inline int AM_GetXferAsynch##M(ea_t endpoint, int target, uintptr_t source_offset, handler_t handler,       \
                                          uintptr_t offset, size_t bytes, AMNOW_P##M)                                  \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_GetXfer(endpoint, target, source_offset, handler, offset, bytes, 1, M, a);                        \
    }                                                                                                                  \
    static inline int AM_Reply##M(void *token, handler_t handler, AMNOW_P##M)                                          \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_Reply(token, handler, M, a);                                                                      \
    }                                                                                                                  \
    static inline int AM_ReplyI##M(void *token, handler_t handler, const void *source, size_t bytes, AMNOW_P##M)       \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_ReplyI(token, handler, source, bytes, M, a);                                                      \
    }                                                                                                                  \
    static inline int AM_ReplyXfer##M(void *token, uintptr_t offset, handler_t handler, const void *source,            \
                                      size_t bytes, AMNOW_P##M)                                                        \
    {                                                                                                                  \
        const int32_t a[] = {AMNOW_V##M};                                                                              \
        return AMNOW_ReplyXfer(token, offset, handler, source, bytes, M, a);                                           \
    }

AMNOW_FORMS(4)
AMNOW_FORMS(8)

#ifdef __cplusplus
}
#endif

#endif /* CCI_AM_H */
