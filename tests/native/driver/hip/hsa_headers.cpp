// hsa_runtime.h says what AMD's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/hip/hsa_runtime.h"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "driver/vendor_checks.h"

using namespace proton::hsa;

SAME(kSuccess, HSA_STATUS_SUCCESS);
SAME(kInfoBreak, HSA_STATUS_INFO_BREAK);
SAME(kErrorOutOfResources, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
SAME(kErrorNotInitialized, HSA_STATUS_ERROR_NOT_INITIALIZED);
SAME(kInfoName, HSA_AGENT_INFO_NAME);
SAME(kInfoVendor, HSA_AGENT_INFO_VENDOR_NAME);
SAME(kInfoNode, HSA_AGENT_INFO_NODE);
SAME(kInfoDevice, HSA_AGENT_INFO_DEVICE);
SAME(kInfoDriverNode, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID);
SAME(kInfoBdf, HSA_AMD_AGENT_INFO_BDFID);
SAME(kInfoProduct, HSA_AMD_AGENT_INFO_PRODUCT_NAME);
SAME(kInfoDomain, HSA_AMD_AGENT_INFO_DOMAIN);
SAME(kInfoUuid, HSA_AMD_AGENT_INFO_UUID);
SAME(kDeviceCpu, HSA_DEVICE_TYPE_CPU);
SAME(kDeviceGpu, HSA_DEVICE_TYPE_GPU);
SAME(kDeviceDsp, HSA_DEVICE_TYPE_DSP);
FIELD(Agent, handle, hsa_agent_t, handle);
SAME_CALL(Init, hsa_init);
SAME_CALL(ShutDown, hsa_shut_down);
SAME_CALL(IterateAgents, hsa_iterate_agents);
SAME_CALL(AgentGetInfo, hsa_agent_get_info);
SAME_CALL(StatusString, hsa_status_string);
