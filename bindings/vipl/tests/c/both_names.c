/*
 * Both names of the segments of a descriptor, in C and C++.
 */

#include <vipl.h>

VIP_UINT32 old_names(VIP_DESCRIPTOR *descriptor, int index);
VIP_UINT32 new_names(VIP_DESCRIPTOR *descriptor, int index);

VIP_UINT32 old_names(VIP_DESCRIPTOR *descriptor, int index) {
    return descriptor->CS.Length + descriptor->DS[index].Local.Length;
}

VIP_UINT32 new_names(VIP_DESCRIPTOR *descriptor, int index) {
    return descriptor->Control.Length + descriptor->Data[index].Local.Length;
}
