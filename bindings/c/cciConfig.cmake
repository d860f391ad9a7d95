# The targets of find_package(cci): cci::cci is the shared library, or the static one where the
# project sets CCI_USE_STATIC_LIBS before; cci::shared and cci::static name one of them.
#
#   lib/cmake/cci/cciConfig.cmake ---> lib/libcci.so.2, lib/libcci.a, include/cci.h
#
# The paths begin at this file, so that the directory may be moved as a whole.

get_filename_component(_cci_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

foreach(_cci_file lib/libcci.so.2 lib/libcci.a include/cci.h)
    if(NOT EXISTS "${_cci_prefix}/${_cci_file}")
        set(cci_FOUND FALSE)
        set(cci_NOT_FOUND_MESSAGE "${_cci_prefix}/${_cci_file} is missing; install cci again")
    endif()
endforeach()

if(NOT DEFINED cci_FOUND OR cci_FOUND)
    if(NOT TARGET cci::shared)
        add_library(cci::shared SHARED IMPORTED)
        set_target_properties(cci::shared PROPERTIES
            IMPORTED_LOCATION "${_cci_prefix}/lib/libcci.so.2"
            IMPORTED_SONAME "libcci.so.2"
            INTERFACE_INCLUDE_DIRECTORIES "${_cci_prefix}/include")
        add_library(cci::static STATIC IMPORTED)
        # The libraries are those of Libs.private in cci.pc.
        set_target_properties(cci::static PROPERTIES
            IMPORTED_LOCATION "${_cci_prefix}/lib/libcci.a"
            INTERFACE_INCLUDE_DIRECTORIES "${_cci_prefix}/include"
            INTERFACE_LINK_LIBRARIES "-lpthread;-ldl;-lrt;-lm;-lutil")
        add_library(cci::cci INTERFACE IMPORTED)
        if(CCI_USE_STATIC_LIBS)
            set_target_properties(cci::cci PROPERTIES INTERFACE_LINK_LIBRARIES cci::static)
        else()
            set_target_properties(cci::cci PROPERTIES INTERFACE_LINK_LIBRARIES cci::shared)
        endif()
    endif()
endif()

unset(_cci_prefix)
unset(_cci_file)
