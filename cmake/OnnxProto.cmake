# Sets ONNX_PROTO_TARGET: the classes that protoc makes of onnx.proto, as a target of the ONNX package.
# ONNX 1.13 and later put its name into a namespace.
find_package(Protobuf REQUIRED)
find_package(ONNX REQUIRED)
if(TARGET ONNX::onnx_proto)
  set(ONNX_PROTO_TARGET ONNX::onnx_proto)
elseif(TARGET onnx_proto)
  set(ONNX_PROTO_TARGET onnx_proto)
else()
  message(FATAL_ERROR "the ONNX package in ${ONNX_DIR} has no target onnx_proto; install libonnx-dev, or what"
                      " tools/install_dependencies names for this system")
endif()
