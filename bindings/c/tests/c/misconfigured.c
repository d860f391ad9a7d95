/* Run with CCI_CONFIG naming a file whose transport is misspelt. */

#include "check.h"

int main(void)
{
    uint32_t caps;
    CHECK_STATUS(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_EINVAL);
    CHECK(strstr(ccix_last_error(), "cci.ini") != NULL);
    CHECK(strstr(ccix_last_error(), "sm") != NULL);
    CHECK_STATUS(cci_finalize(), CCI_ERROR);
    return 0;
}
