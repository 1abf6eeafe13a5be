// SPDX-License-Identifier: Apache-2.0
// The place of every member that is used, by number: what declarations.hpp says is compared with
// it, and ONNX Runtime's own headers where they are at hand.
#pragma once
#include <cstddef>

#include "onnxruntime_ep/ort.hpp"
#include "support/for_each.hpp"

namespace bertcl::onnxruntime_ep {

#define BERTCL_SLOTS(table, ...)              \
  struct SlotsOf##table {                     \
    using Table = table;                      \
    BERTCL_FOR_EACH(BERTCL_SLOT, __VA_ARGS__) \
  }
#define BERTCL_SLOT(member) BERTCL_SLOT_OF member
#define BERTCL_SLOT_OF(member, slot) \
  static_assert(offsetof(Table, member) == (slot) * sizeof(void*), #member);

BERTCL_SLOTS(OrtApi, (CreateStatus, 0), (GetErrorMessage, 2), (GetTensorMutableData, 51),
             (CastTypeInfoToTensorInfo, 55), (GetTensorElementType, 60), (GetDimensionsCount, 61),
             (GetDimensions, 62), (GetSymbolicDimensions, 63), (GetTensorTypeAndShape, 65),
             (KernelContext_GetInput, 90), (KernelContext_GetOutput, 91), (ReleaseStatus, 93),
             (ReleaseValue, 96), (ReleaseTensorTypeAndShapeInfo, 99), (Logger_LogMessage, 247),
             (ReadOpAttr, 272), (GetValueInfoName, 289), (GetValueInfoTypeInfo, 290),
             (CreateKeyValuePairs, 295), (AddKeyValuePair, 296), (GetKeyValue, 297),
             (GetKeyValuePairs, 298), (ReleaseKeyValuePairs, 300), (HardwareDevice_Type, 307),
             (GetEpApi, 317), (GetTensorSizeInBytes, 318), (ValueInfo_GetInitializerValue, 326),
             (ValueInfo_IsConstantInitializer, 331), (ValueInfo_IsFromOuterScope, 332),
             (Graph_GetNumOperatorSets, 336), (Graph_GetOperatorSets, 337),
             (Graph_GetNumOutputs, 340), (Graph_GetOutputs, 341), (Graph_GetNumNodes, 344),
             (Graph_GetNodes, 345), (Graph_GetParentNode, 346), (Node_GetName, 349),
             (Node_GetOperatorType, 350), (Node_GetDomain, 351), (Node_GetNumInputs, 353),
             (Node_GetInputs, 354), (Node_GetNumOutputs, 355), (Node_GetOutputs, 356),
             (Node_GetNumImplicitInputs, 357), (Node_GetImplicitInputs, 358),
             (Node_GetNumAttributes, 359), (Node_GetAttributes, 360),
             (OpAttr_GetTensorAttributeAsOrtValue, 362), (OpAttr_GetType, 363),
             (OpAttr_GetName, 364), (Node_GetNumSubgraphs, 365), (Node_GetEpName, 368),
             (GetTensorData, 378), (GetSessionOptionsConfigEntries, 379));
BERTCL_SLOTS(OrtEpApi, (CreateEpDevice, 0), (EpGraphSupportInfo_AddNodesToFuse, 2));
BERTCL_SLOTS(OrtEp, (ort_version_supported, 0), (GetName, 1), (GetCapability, 2), (Compile, 3),
             (ReleaseNodeComputeInfos, 4));
BERTCL_SLOTS(OrtEpFactory, (ort_version_supported, 0), (GetName, 1), (GetVendor, 2),
             (GetSupportedDevices, 3), (CreateEp, 4), (ReleaseEp, 5), (GetVendorId, 6),
             (GetVersion, 7), (ValidateCompiledModelCompatibilityInfo, 8), (CreateAllocator, 9),
             (ReleaseAllocator, 10), (CreateDataTransfer, 11), (IsStreamAware, 12),
             (CreateSyncStreamForDevice, 13));
#undef BERTCL_SLOTS
#undef BERTCL_SLOT
#undef BERTCL_SLOT_OF
static_assert(sizeof(OrtNodeFusionOptions) == 8 && sizeof(OrtNodeComputeInfo) == 32);

}  // namespace bertcl::onnxruntime_ep
