/*
 * Active Messages II, names by value as rank and number. `pkg-config --cflags --libs ammpi`.
 */

#ifndef CCI_AMMPI_H
#define CCI_AMMPI_H

/* The name of an endpoint: the rank of its process, and a number in it. */
typedef struct {
    int mpirank;
    int mpitag;
} en_t;

#define AMX_DIALECT AMMPI_
#include "amx.h"

#define AMMPI_LIBRARY_VERSION 2
#define AMMPI_MAX_SHORT AMX_MAX_SHORT
#define AMMPI_MAX_MEDIUM AMX_MAX_MEDIUM
#define AMMPI_MAX_LONG AMX_MAX_LONG
#define AMMPI_MAX_NUMHANDLERS AMX_MAX_NUMHANDLERS
#define AMMPI_MAX_NUMTRANSLATIONS AMX_MAX_NUMTRANSLATIONS
#define AMMPI_MAX_SEGLENGTH AMX_MAX_SEGLENGTH
#define AMMPI_MAX_BUNDLES AMX_MAX_BUNDLES
#define AMMPI_MAX_NETWORKDEPTH AMX_MAX_NETWORKDEPTH
#define AMMPI_DEFAULT_NETWORKDEPTH AMX_DEFAULT_NETWORKDEPTH
typedef amx_stats_t ammpi_stats_t;
typedef amx_category_t ammpi_category_t;
typedef amx_handler_fn_t ammpi_handler_fn_t;

#endif /* CCI_AMMPI_H */
