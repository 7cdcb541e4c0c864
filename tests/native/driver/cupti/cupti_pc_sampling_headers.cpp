// cupti_pc_sampling.h says what NVIDIA's header says.
//
// Compiled, never run, by test_vendor_headers.py, as cupti_headers.cpp is.
#include "driver/cupti/cupti_pc_sampling.h"

#include <cuda.h>

#include <cupti.h>
#include <cupti_pcsampling.h>

#define SAME(ours, theirs)                                                                         \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
#define FIELD(type, field, vendor_type, vendor_field)                                              \
  SAME(sizeof(type), sizeof(vendor_type));                                                         \
  SAME(offsetof(type, field), offsetof(vendor_type, vendor_field));                                \
  SAME(sizeof(type::field), sizeof(vendor_type::vendor_field))
// A field of the union of settings, with its own size.
#define SETTING(field, vendor_member, vendor_field)                                                \
  SAME(offsetof(PcSetting, field), offsetof(CUpti_PCSamplingConfigurationInfo, attributeData));    \
  SAME(sizeof(PcSetting::field),                                                                   \
       sizeof(CUpti_PCSamplingConfigurationInfo::attributeData.vendor_member.vendor_field))

using namespace proton::cupti;

SAME(kStallReasonNameBytes, CUPTI_STALL_REASON_STRING_SIZE);
SAME(kPcContinuous, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
SAME(kPcPeriod, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
SAME(kPcStallReasons, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON);
SAME(kPcScratchBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
SAME(kPcHardwareBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
SAME(kPcCollectionMode, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
SAME(kPcStartStopControl, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL);
SAME(kPcBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);

FIELD(PcStallReason, index, CUpti_PCSamplingStallReason, pcSamplingStallReasonIndex);
FIELD(PcStallReason, samples, CUpti_PCSamplingStallReason, samples);
FIELD(PcData, struct_bytes, CUpti_PCSamplingPCData, size);
FIELD(PcData, cubin_crc, CUpti_PCSamplingPCData, cubinCrc);
FIELD(PcData, offset, CUpti_PCSamplingPCData, pcOffset);
FIELD(PcData, function_index, CUpti_PCSamplingPCData, functionIndex);
FIELD(PcData, function_name, CUpti_PCSamplingPCData, functionName);
FIELD(PcData, stall_reason_count, CUpti_PCSamplingPCData, stallReasonCount);
FIELD(PcData, stall_reasons, CUpti_PCSamplingPCData, stallReason);
FIELD(PcData, correlation_id, CUpti_PCSamplingPCData, correlationId);
FIELD(PcSamples, struct_bytes, CUpti_PCSamplingData, size);
FIELD(PcSamples, most_pcs, CUpti_PCSamplingData, collectNumPcs);
FIELD(PcSamples, total, CUpti_PCSamplingData, totalSamples);
FIELD(PcSamples, dropped, CUpti_PCSamplingData, droppedSamples);
FIELD(PcSamples, pc_count, CUpti_PCSamplingData, totalNumPcs);
FIELD(PcSamples, remaining_pcs, CUpti_PCSamplingData, remainingNumPcs);
FIELD(PcSamples, range, CUpti_PCSamplingData, rangeId);
FIELD(PcSamples, pcs, CUpti_PCSamplingData, pPcData);
FIELD(PcSamples, of_driver_kernels, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
FIELD(PcSamples, is_hardware_buffer_full, CUpti_PCSamplingData, hardwareBufferFull);
FIELD(PcSetting, attribute, CUpti_PCSamplingConfigurationInfo, attributeType);
FIELD(PcSetting, status, CUpti_PCSamplingConfigurationInfo, attributeStatus);
SETTING(raw, invalidData, data);
SETTING(number, samplingPeriodData, samplingPeriod);
SETTING(number, enableStartStopControlData, enableStartStopControl);
SETTING(bytes, scratchBufferSizeData, scratchBufferSize);
SETTING(bytes, hardwareBufferSizeData, hardwareBufferSize);
SETTING(mode, collectionModeData, collectionMode);
SETTING(buffer, samplingDataBufferData, samplingDataBuffer);
SETTING(stall_reasons.count, stallReasonData, stallReasonCount);
FIELD(PcSetting, stall_reasons.indices, CUpti_PCSamplingConfigurationInfo,
      attributeData.stallReasonData.pStallReasonIndex);

#define SAME_CONTEXT(vendor_type)                                                                  \
  FIELD(PcContextParameters, struct_bytes, vendor_type, size);                                     \
  FIELD(PcContextParameters, reserved, vendor_type, pPriv);                                        \
  FIELD(PcContextParameters, context, vendor_type, ctx)
SAME_CONTEXT(CUpti_PCSamplingEnableParams);
SAME_CONTEXT(CUpti_PCSamplingDisableParams);
SAME_CONTEXT(CUpti_PCSamplingStartParams);
SAME_CONTEXT(CUpti_PCSamplingStopParams);
FIELD(PcConfigurationParameters, context, CUpti_PCSamplingConfigurationInfoParams, ctx);
FIELD(PcConfigurationParameters, setting_count, CUpti_PCSamplingConfigurationInfoParams,
      numAttributes);
FIELD(PcConfigurationParameters, settings, CUpti_PCSamplingConfigurationInfoParams,
      pPCSamplingConfigurationInfo);
FIELD(PcGetDataParameters, context, CUpti_PCSamplingGetDataParams, ctx);
FIELD(PcGetDataParameters, samples, CUpti_PCSamplingGetDataParams, pcSamplingData);
FIELD(PcNumStallReasonsParameters, context, CUpti_PCSamplingGetNumStallReasonsParams, ctx);
FIELD(PcNumStallReasonsParameters, count, CUpti_PCSamplingGetNumStallReasonsParams,
      numStallReasons);
FIELD(PcStallReasonsParameters, context, CUpti_PCSamplingGetStallReasonsParams, ctx);
FIELD(PcStallReasonsParameters, count, CUpti_PCSamplingGetStallReasonsParams, numStallReasons);
FIELD(PcStallReasonsParameters, indices, CUpti_PCSamplingGetStallReasonsParams, stallReasonIndex);
FIELD(PcStallReasonsParameters, names, CUpti_PCSamplingGetStallReasonsParams, stallReasons);
FIELD(SassToSourceParameters, cubin, CUpti_GetSassToSourceCorrelationParams, cubin);
FIELD(SassToSourceParameters, function, CUpti_GetSassToSourceCorrelationParams, functionName);
FIELD(SassToSourceParameters, cubin_size, CUpti_GetSassToSourceCorrelationParams, cubinSize);
FIELD(SassToSourceParameters, line, CUpti_GetSassToSourceCorrelationParams, lineNumber);
FIELD(SassToSourceParameters, offset, CUpti_GetSassToSourceCorrelationParams, pcOffset);
FIELD(SassToSourceParameters, file, CUpti_GetSassToSourceCorrelationParams, fileName);
FIELD(SassToSourceParameters, folder, CUpti_GetSassToSourceCorrelationParams, dirName);
