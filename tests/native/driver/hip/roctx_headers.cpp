// hip_driver.h says of ROCTX what AMD's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/hip/hip_driver.h"

#include <roctracer/roctracer_roctx.h>

#include "driver/vendor_checks.h"

using namespace proton::roctx;

SAME(kMark, ROCTX_API_ID_roctxMarkA);
SAME(kRangePush, ROCTX_API_ID_roctxRangePushA);
SAME(kRangePop, ROCTX_API_ID_roctxRangePop);
SAME(kRangeStart, ROCTX_API_ID_roctxRangeStartA);
SAME(kRangeStop, ROCTX_API_ID_roctxRangeStop);
START(CallbackData, message, roctx_api_data_t, args.message);
START(CallbackData, range_id, roctx_api_data_t, args.id);
SAME_CALL(Mark, roctxMarkA);
