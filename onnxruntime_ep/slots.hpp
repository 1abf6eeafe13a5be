// SPDX-License-Identifier: Apache-2.0
// The place of every member that is used, by number: what declarations.hpp says is compared with
// it, and ONNX Runtime's own headers where they are at hand.
#pragma once
#include <cstddef>

#include "onnxruntime_ep/ort.hpp"

namespace bertcl::onnxruntime_ep {

#define BERTCL_SLOT(table, member, slot) \
  static_assert(offsetof(table, member) == (slot) * sizeof(void*), #table "::" #member)

BERTCL_SLOT(OrtApi, CreateStatus, 0);
BERTCL_SLOT(OrtApi, GetErrorMessage, 2);
BERTCL_SLOT(OrtApi, GetTensorMutableData, 51);
BERTCL_SLOT(OrtApi, CastTypeInfoToTensorInfo, 55);
BERTCL_SLOT(OrtApi, GetTensorElementType, 60);
BERTCL_SLOT(OrtApi, GetDimensionsCount, 61);
BERTCL_SLOT(OrtApi, GetDimensions, 62);
BERTCL_SLOT(OrtApi, GetSymbolicDimensions, 63);
BERTCL_SLOT(OrtApi, GetTensorTypeAndShape, 65);
BERTCL_SLOT(OrtApi, KernelContext_GetInput, 90);
BERTCL_SLOT(OrtApi, KernelContext_GetOutput, 91);
BERTCL_SLOT(OrtApi, ReleaseStatus, 93);
BERTCL_SLOT(OrtApi, ReleaseValue, 96);
BERTCL_SLOT(OrtApi, ReleaseTensorTypeAndShapeInfo, 99);
BERTCL_SLOT(OrtApi, Logger_LogMessage, 247);
BERTCL_SLOT(OrtApi, ReadOpAttr, 272);
BERTCL_SLOT(OrtApi, GetValueInfoName, 289);
BERTCL_SLOT(OrtApi, GetValueInfoTypeInfo, 290);
BERTCL_SLOT(OrtApi, CreateKeyValuePairs, 295);
BERTCL_SLOT(OrtApi, AddKeyValuePair, 296);
BERTCL_SLOT(OrtApi, GetKeyValue, 297);
BERTCL_SLOT(OrtApi, GetKeyValuePairs, 298);
BERTCL_SLOT(OrtApi, ReleaseKeyValuePairs, 300);
BERTCL_SLOT(OrtApi, HardwareDevice_Type, 307);
BERTCL_SLOT(OrtApi, GetEpApi, 317);
BERTCL_SLOT(OrtApi, GetTensorSizeInBytes, 318);
BERTCL_SLOT(OrtApi, ValueInfo_GetInitializerValue, 326);
BERTCL_SLOT(OrtApi, ValueInfo_IsConstantInitializer, 331);
BERTCL_SLOT(OrtApi, Graph_GetNumOperatorSets, 336);
BERTCL_SLOT(OrtApi, Graph_GetOperatorSets, 337);
BERTCL_SLOT(OrtApi, Graph_GetNumOutputs, 340);
BERTCL_SLOT(OrtApi, Graph_GetOutputs, 341);
BERTCL_SLOT(OrtApi, Graph_GetNumNodes, 344);
BERTCL_SLOT(OrtApi, Graph_GetNodes, 345);
BERTCL_SLOT(OrtApi, Graph_GetParentNode, 346);
BERTCL_SLOT(OrtApi, Node_GetName, 349);
BERTCL_SLOT(OrtApi, Node_GetOperatorType, 350);
BERTCL_SLOT(OrtApi, Node_GetDomain, 351);
BERTCL_SLOT(OrtApi, Node_GetNumInputs, 353);
BERTCL_SLOT(OrtApi, Node_GetInputs, 354);
BERTCL_SLOT(OrtApi, Node_GetNumOutputs, 355);
BERTCL_SLOT(OrtApi, Node_GetOutputs, 356);
BERTCL_SLOT(OrtApi, Node_GetNumImplicitInputs, 357);
BERTCL_SLOT(OrtApi, Node_GetImplicitInputs, 358);
BERTCL_SLOT(OrtApi, Node_GetNumAttributes, 359);
BERTCL_SLOT(OrtApi, Node_GetAttributes, 360);
BERTCL_SLOT(OrtApi, OpAttr_GetTensorAttributeAsOrtValue, 362);
BERTCL_SLOT(OrtApi, OpAttr_GetType, 363);
BERTCL_SLOT(OrtApi, OpAttr_GetName, 364);
BERTCL_SLOT(OrtApi, Node_GetNumSubgraphs, 365);
BERTCL_SLOT(OrtApi, Node_GetEpName, 368);
BERTCL_SLOT(OrtApi, GetTensorData, 378);
BERTCL_SLOT(OrtApi, GetSessionOptionsConfigEntries, 379);

BERTCL_SLOT(OrtEpApi, CreateEpDevice, 0);
BERTCL_SLOT(OrtEpApi, EpGraphSupportInfo_AddNodesToFuse, 2);
BERTCL_SLOT(OrtEp, ort_version_supported, 0);
BERTCL_SLOT(OrtEp, GetName, 1);
BERTCL_SLOT(OrtEp, GetCapability, 2);
BERTCL_SLOT(OrtEp, Compile, 3);
BERTCL_SLOT(OrtEp, ReleaseNodeComputeInfos, 4);
BERTCL_SLOT(OrtEpFactory, ort_version_supported, 0);
BERTCL_SLOT(OrtEpFactory, GetName, 1);
BERTCL_SLOT(OrtEpFactory, GetVendor, 2);
BERTCL_SLOT(OrtEpFactory, GetSupportedDevices, 3);
BERTCL_SLOT(OrtEpFactory, CreateEp, 4);
BERTCL_SLOT(OrtEpFactory, ReleaseEp, 5);
BERTCL_SLOT(OrtEpFactory, GetVendorId, 6);
BERTCL_SLOT(OrtEpFactory, GetVersion, 7);
BERTCL_SLOT(OrtEpFactory, ValidateCompiledModelCompatibilityInfo, 8);
BERTCL_SLOT(OrtEpFactory, CreateAllocator, 9);
BERTCL_SLOT(OrtEpFactory, ReleaseAllocator, 10);
BERTCL_SLOT(OrtEpFactory, CreateDataTransfer, 11);
BERTCL_SLOT(OrtEpFactory, IsStreamAware, 12);
BERTCL_SLOT(OrtEpFactory, CreateSyncStreamForDevice, 13);
#undef BERTCL_SLOT
static_assert(sizeof(OrtNodeFusionOptions) == 8 && sizeof(OrtNodeComputeInfo) == 32);

}  // namespace bertcl::onnxruntime_ep
