/*
 * A request there and back between two endpoints of one bundle, for one dialect.
 */

#include "check.h"

#define PART(FUNCTION, PREFIX, ENDPOINT, NAME)                                                                         \
    static int PREFIX##_answers;                                                                                       \
    static void PREFIX##_ask(void *token, int32_t a, int32_t b, int32_t c, int32_t d)                                  \
    {                                                                                                                  \
        CHECK_OK(AM_Reply4(token, 2, a, b, c, d));                                                                     \
    }                                                                                                                  \
    static void PREFIX##_answer(void *token, int32_t a, int32_t b, int32_t c, int32_t d)                               \
    {                                                                                                                  \
        (void)token;                                                                                                   \
        PREFIX##_answers += a + b + c + d;                                                                             \
    }                                                                                                                  \
    int FUNCTION(void);                                                                                                \
    int FUNCTION(void)                                                                                                 \
    {                                                                                                                  \
        eb_t bundle;                                                                                                   \
        ENDPOINT client, server;                                                                                       \
        NAME client_name;                                                                                              \
        NAME server_name;                                                                                              \
        CHECK_OK(AM_Init());                                                                                           \
        CHECK_OK(AM_AllocateBundle(AM_SEQ, &bundle));                                                                  \
        CHECK_OK(AM_AllocateEndpoint(bundle, &client, &client_name));                                                  \
        CHECK_OK(AM_AllocateEndpoint(bundle, &server, &server_name));                                                  \
        CHECK_OK(AM_SetTag(server, 5));                                                                                \
        CHECK_OK(AM_SetHandler(server, 1, PREFIX##_ask));                                                              \
        CHECK_OK(AM_SetHandler(client, 2, PREFIX##_answer));                                                           \
        CHECK_OK(AM_Map(client, 0, server_name, 5));                                                                   \
        CHECK_OK(AM_Request4(client, 0, 1, 1, 2, 3, 4));                                                               \
        POLL_UNTIL(bundle, PREFIX##_answers == 10);                                                                    \
        CHECK_CODE(AM_Request4(client, 1, 1, 1, 2, 3, 4), AM_ERR_BAD_ARG);                                             \
        CHECK_OK(AM_Terminate());                                                                                      \
        return PREFIX##_answers;                                                                                       \
    }
