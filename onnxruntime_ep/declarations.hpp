// SPDX-License-Identifier: Apache-2.0
// What the provider uses of ONNX Runtime's C interface, for builds without its headers (no package
// brings them): tables of functions with unused members as plain slots. ONNX Runtime only ever adds
// members at the end, so the numbers in ort.hpp hold for every version since 1.23.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {

struct OrtAllocator;
struct OrtDataTransferImpl;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtMemoryDevice;
struct OrtMemoryInfo;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtSyncStreamImpl;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;
struct OrtEp;
struct OrtEpFactory;

enum OrtErrorCode { ORT_OK, ORT_FAIL, ORT_INVALID_ARGUMENT, ORT_NOT_IMPLEMENTED = 9 };
enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE,
  ORT_LOGGING_LEVEL_INFO,
  ORT_LOGGING_LEVEL_WARNING,
  ORT_LOGGING_LEVEL_ERROR
};
enum OrtOpAttrType {
  ORT_OP_ATTR_UNDEFINED,
  ORT_OP_ATTR_INT,
  ORT_OP_ATTR_INTS,
  ORT_OP_ATTR_FLOAT,
  ORT_OP_ATTR_FLOATS,
  ORT_OP_ATTR_STRING,
  ORT_OP_ATTR_STRINGS,
  ORT_OP_ATTR_GRAPH,
  ORT_OP_ATTR_TENSOR
};
enum OrtHardwareDeviceType {
  OrtHardwareDeviceType_CPU,
  OrtHardwareDeviceType_GPU,
  OrtHardwareDeviceType_NPU
};
enum OrtCompiledModelCompatibility { OrtCompiledModelCompatibility_EP_NOT_APPLICABLE };
/// The numbers of TensorProto.DataType.
enum ONNXTensorElementDataType { ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED };

struct OrtEpApi;

struct OrtApi {
  OrtStatus* (*CreateStatus)(OrtErrorCode, const char*) noexcept;
  void* unused_1[1];
  const char* (*GetErrorMessage)(const OrtStatus*) noexcept;
  void* unused_3[48];
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void**) noexcept;
  void* unused_52[3];
  OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*,
                                         const OrtTensorTypeAndShapeInfo**) noexcept;
  void* unused_56[4];
  OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo*,
                                     ONNXTensorElementDataType*) noexcept;
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*, size_t*) noexcept;
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t) noexcept;
  OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo*, const char**,
                                      size_t) noexcept;
  void* unused_64[1];
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue*, OrtTensorTypeAndShapeInfo**) noexcept;
  void* unused_66[24];
  OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext*, size_t, const OrtValue**) noexcept;
  OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext*, size_t, const int64_t*, size_t,
                                        OrtValue**) noexcept;
  void* unused_92[1];
  void (*ReleaseStatus)(OrtStatus*) noexcept;
  void* unused_94[2];
  void (*ReleaseValue)(OrtValue*) noexcept;
  void* unused_97[2];
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo*) noexcept;
  void* unused_100[147];
  OrtStatus* (*Logger_LogMessage)(const OrtLogger*, OrtLoggingLevel, const char* message,
                                  const char* file, int line, const char* function) noexcept;
  void* unused_248[24];
  OrtStatus* (*ReadOpAttr)(const OrtOpAttr*, OrtOpAttrType, void*, size_t bytes,
                           size_t* needed) noexcept;
  void* unused_273[16];
  OrtStatus* (*GetValueInfoName)(const OrtValueInfo*, const char**) noexcept;
  OrtStatus* (*GetValueInfoTypeInfo)(const OrtValueInfo*, const OrtTypeInfo**) noexcept;
  void* unused_291[4];
  void (*CreateKeyValuePairs)(OrtKeyValuePairs**) noexcept;
  void (*AddKeyValuePair)(OrtKeyValuePairs*, const char* key, const char* value) noexcept;
  const char* (*GetKeyValue)(const OrtKeyValuePairs*, const char* key) noexcept;
  void (*GetKeyValuePairs)(const OrtKeyValuePairs*, const char* const** keys,
                           const char* const** values, size_t*) noexcept;
  void* unused_299[1];
  void (*ReleaseKeyValuePairs)(OrtKeyValuePairs*) noexcept;
  void* unused_301[6];
  OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice*) noexcept;
  void* unused_308[9];
  const OrtEpApi* (*GetEpApi)() noexcept;
  OrtStatus* (*GetTensorSizeInBytes)(const OrtValue*, size_t*) noexcept;
  void* unused_319[7];
  OrtStatus* (*ValueInfo_GetInitializerValue)(const OrtValueInfo*, const OrtValue**) noexcept;
  void* unused_327[4];
  OrtStatus* (*ValueInfo_IsConstantInitializer)(const OrtValueInfo*, bool*) noexcept;
  OrtStatus* (*ValueInfo_IsFromOuterScope)(const OrtValueInfo*, bool*) noexcept;
  void* unused_333[3];
  OrtStatus* (*Graph_GetNumOperatorSets)(const OrtGraph*, size_t*) noexcept;
  OrtStatus* (*Graph_GetOperatorSets)(const OrtGraph*, const char** domains, int64_t* versions,
                                      size_t) noexcept;
  void* unused_338[2];
  OrtStatus* (*Graph_GetNumOutputs)(const OrtGraph*, size_t*) noexcept;
  OrtStatus* (*Graph_GetOutputs)(const OrtGraph*, const OrtValueInfo**, size_t) noexcept;
  void* unused_342[2];
  OrtStatus* (*Graph_GetNumNodes)(const OrtGraph*, size_t*) noexcept;
  OrtStatus* (*Graph_GetNodes)(const OrtGraph*, const OrtNode**, size_t) noexcept;
  OrtStatus* (*Graph_GetParentNode)(const OrtGraph*, const OrtNode**) noexcept;
  void* unused_347[2];
  OrtStatus* (*Node_GetName)(const OrtNode*, const char**) noexcept;
  OrtStatus* (*Node_GetOperatorType)(const OrtNode*, const char**) noexcept;
  OrtStatus* (*Node_GetDomain)(const OrtNode*, const char**) noexcept;
  void* unused_352[1];
  OrtStatus* (*Node_GetNumInputs)(const OrtNode*, size_t*) noexcept;
  OrtStatus* (*Node_GetInputs)(const OrtNode*, const OrtValueInfo**, size_t) noexcept;
  OrtStatus* (*Node_GetNumOutputs)(const OrtNode*, size_t*) noexcept;
  OrtStatus* (*Node_GetOutputs)(const OrtNode*, const OrtValueInfo**, size_t) noexcept;
  OrtStatus* (*Node_GetNumImplicitInputs)(const OrtNode*, size_t*) noexcept;
  OrtStatus* (*Node_GetImplicitInputs)(const OrtNode*, const OrtValueInfo**, size_t) noexcept;
  OrtStatus* (*Node_GetNumAttributes)(const OrtNode*, size_t*) noexcept;
  OrtStatus* (*Node_GetAttributes)(const OrtNode*, const OrtOpAttr**, size_t) noexcept;
  void* unused_361[1];
  OrtStatus* (*OpAttr_GetTensorAttributeAsOrtValue)(const OrtOpAttr*, OrtValue**) noexcept;
  OrtStatus* (*OpAttr_GetType)(const OrtOpAttr*, OrtOpAttrType*) noexcept;
  OrtStatus* (*OpAttr_GetName)(const OrtOpAttr*, const char**) noexcept;
  OrtStatus* (*Node_GetNumSubgraphs)(const OrtNode*, size_t*) noexcept;
  void* unused_366[2];
  OrtStatus* (*Node_GetEpName)(const OrtNode*, const char**) noexcept;
  void* unused_369[9];
  OrtStatus* (*GetTensorData)(const OrtValue*, const void**) noexcept;
  OrtStatus* (*GetSessionOptionsConfigEntries)(const OrtSessionOptions*,
                                               OrtKeyValuePairs**) noexcept;
  void* unused_380[10];
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo*) noexcept;  // since 1.24
};

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version) noexcept;
  const char* (*GetVersionString)() noexcept;
};

struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers;
};

struct OrtEpApi {
  OrtStatus* (*CreateEpDevice)(OrtEpFactory*, const OrtHardwareDevice*,
                               const OrtKeyValuePairs* metadata, const OrtKeyValuePairs* options,
                               OrtEpDevice**) noexcept;
  void* unused_1[1];
  OrtStatus* (*EpGraphSupportInfo_AddNodesToFuse)(OrtEpGraphSupportInfo*, const OrtNode* const*,
                                                  size_t, const OrtNodeFusionOptions*) noexcept;
};

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state);
};

/// ONNX Runtime calls no member that is younger than `ort_version_supported`, nor one that is null.
struct OrtEp {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp*) noexcept;
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) noexcept;
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused, size_t,
                        OrtNodeComputeInfo**, OrtNode** context_nodes) noexcept;
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo**, size_t) noexcept;
  void* unused[32];
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory*) noexcept;
  const char* (*GetVendor)(const OrtEpFactory*) noexcept;
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t,
                                    OrtEpDevice**, size_t max, size_t* count) noexcept;
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const*,
                         const OrtKeyValuePairs* const* metadata, size_t, const OrtSessionOptions*,
                         const OrtLogger*, OrtEp**) noexcept;
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*) noexcept;
  uint32_t (*GetVendorId)(const OrtEpFactory*) noexcept;
  const char* (*GetVersion)(const OrtEpFactory*) noexcept;
  OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*,
                                                       const OrtHardwareDevice* const*, size_t,
                                                       const char*,
                                                       OrtCompiledModelCompatibility*) noexcept;
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                                OrtAllocator**) noexcept;
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*) noexcept;
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl**) noexcept;
  bool (*IsStreamAware)(const OrtEpFactory*) noexcept;
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEpFactory*, const OrtMemoryDevice*,
                                          const OrtKeyValuePairs*, OrtSyncStreamImpl**) noexcept;
  void* unused[32];
};

}  // extern "C"
