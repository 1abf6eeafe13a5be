// SPDX-License-Identifier: Apache-2.0
// bertcl._bertcl: Session over NumPy arrays. The public classes are those of bertcl/session.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bertcl/bertcl.hpp"
#include "evaluation.hpp"
#include "lock.hpp"
#include "path.hpp"
#include "quantization.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, nb::c_contig>;

struct NumpyType {
  bertcl::ElementType type;
  nb::dlpack::dtype_code code;
  const char* name;  // as onnxruntime names it
};

// NumPy has no bf16: it comes as its 16 bits.
constexpr NumpyType kTypes[] = {
    {bertcl::ElementType::f32, nb::dlpack::dtype_code::Float, "float"},
    {bertcl::ElementType::f16, nb::dlpack::dtype_code::Float, "float16"},
    {bertcl::ElementType::f64, nb::dlpack::dtype_code::Float, "double"},
    {bertcl::ElementType::i8, nb::dlpack::dtype_code::Int, "int8"},
    {bertcl::ElementType::i16, nb::dlpack::dtype_code::Int, "int16"},
    {bertcl::ElementType::i32, nb::dlpack::dtype_code::Int, "int32"},
    {bertcl::ElementType::i64, nb::dlpack::dtype_code::Int, "int64"},
    {bertcl::ElementType::u8, nb::dlpack::dtype_code::UInt, "uint8"},
    {bertcl::ElementType::u16, nb::dlpack::dtype_code::UInt, "uint16"},
    {bertcl::ElementType::u32, nb::dlpack::dtype_code::UInt, "uint32"},
    {bertcl::ElementType::u64, nb::dlpack::dtype_code::UInt, "uint64"},
    {bertcl::ElementType::boolean, nb::dlpack::dtype_code::Bool, "bool"},
    {bertcl::ElementType::bf16, nb::dlpack::dtype_code::UInt, "bfloat16"},
};

const NumpyType& numpy_type(bertcl::ElementType type) {
  for (const NumpyType& known : kTypes)
    if (known.type == type) return known;
  throw bertcl::Error("NumPy has no " + std::string(bertcl::name_of(type)));
}

bertcl::Tensor tensor_of(const std::string& name, const Array& array) {
  const nb::dlpack::dtype type = array.dtype();
  for (const NumpyType& known : kTypes) {
    if (type.lanes != 1 || type.code != static_cast<std::uint8_t>(known.code) ||
        type.bits != 8 * bertcl::size_of(known.type))
      continue;
    std::vector<std::int64_t> shape;
    for (std::size_t i = 0; i < array.ndim(); ++i)
      shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    return bertcl::Tensor(known.type, std::move(shape),
                          {static_cast<const std::byte*>(array.data()), array.nbytes()});
  }
  throw bertcl::Error("input '" + name + "' has unknown element type (DLPack code " +
                      std::to_string(type.code) + ", " + std::to_string(type.bits) + " bits)");
}

Result array_of(const bertcl::Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  std::byte* copy = new std::byte[bytes.size() + 1];  // the caller may write to it
  nb::capsule owner(copy, [](void* data) noexcept { delete[] static_cast<std::byte*>(data); });
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  const std::vector<std::size_t> shape(tensor.shape().begin(), tensor.shape().end());
  const nb::dlpack::dtype type{static_cast<std::uint8_t>(numpy_type(tensor.type()).code),
                               static_cast<std::uint8_t>(8 * bertcl::size_of(tensor.type())), 1};
  return Result(copy, shape.size(), shape.data(), owner, nullptr, type);
}

nb::dict arrays_of(const bertcl::Tensors& tensors) {
  nb::dict arrays;
  for (const auto& [name, tensor] : tensors) arrays[name.c_str()] = array_of(tensor);
  return arrays;
}

bertcl::Precision precision_of(const std::string& name) {
  if (name == "fp32") return bertcl::Precision::fp32;
  if (name == "fp16") return bertcl::Precision::fp16;
  if (name == "bf16") return bertcl::Precision::bf16;
  throw bertcl::Error("unknown precision '" + name + "' (choose from fp32, fp16, bf16)");
}

const char* name_of(bertcl::Precision precision) {
  return precision == bertcl::Precision::fp16   ? "fp16"
         : precision == bertcl::Precision::bf16 ? "bf16"
                                                : "fp32";
}

using Model = std::variant<Path, nb::bytes>;  // a file, or its content

void load(bertcl::Session* session, const Model& model, const std::string& device,
          const std::string& precision, int requests, std::int64_t max_memory, bool require_int8,
          bool allow_nonfinite, const std::optional<std::string>& pooling, bool normalize,
          std::int64_t dimensions, bool or_own, const std::vector<Path>& dense) {
  bertcl::SessionOptions options;
  options.device = device;
  options.precision = precision_of(precision);
  options.requests = requests;
  options.max_memory = max_memory;
  options.require_int8 = require_int8;
  options.allow_nonfinite = allow_nonfinite;
  if (pooling)
    options.pooling = bertcl::Pooling{*pooling, or_own, normalize, dimensions, file_names(dense)};
  bertcl::ModelBytes content;
  const auto* bytes = std::get_if<nb::bytes>(&model);
  if (bytes) content.bytes = {static_cast<const std::byte*>(bytes->data()), bytes->size()};
  LockReleased others_run;
  new (session) bertcl::Session(bytes ? bertcl::Session::load(content, options)
                                      : bertcl::Session::load(std::get<Path>(model), options));
}

nb::dict run(const bertcl::Session& session, const std::map<std::string, Array>& feeds,
             const std::vector<std::string>& names) {
  bertcl::Tensors inputs, outputs;
  for (const auto& [name, array] : feeds) inputs.emplace(name, tensor_of(name, array));
  {
    LockReleased others_run;
    outputs = session.run(inputs, {names});
  }
  return arrays_of(outputs);
}

using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<std::int64_t> numbers(const Ids& ids) { return {ids.data(), ids.data() + ids.size()}; }

nb::dict run_sequences(const bertcl::Session& session, const Ids& ids,
                       const std::optional<Ids>& types, const Ids& offsets,
                       const std::vector<std::string>& names) {
  bertcl::Sequences sequences{numbers(ids), {}, numbers(offsets)};
  if (types) sequences.token_type_ids = numbers(*types);
  bertcl::Tensors outputs;
  {
    LockReleased others_run;
    outputs = session.run(sequences, {names});
  }
  return arrays_of(outputs);
}

nb::list ports(const std::vector<bertcl::Port>& ports) {
  nb::list all;
  for (const bertcl::Port& port : ports) {
    nb::list shape;
    for (const std::int64_t extent : port.shape) {
      if (extent < 0)
        shape.append(nb::none());
      else
        shape.append(extent);
    }
    all.append(nb::make_tuple(port.name, shape,
                              "tensor(" + std::string(numpy_type(port.type).name) + ")"));
  }
  return all;
}

/// As Hugging Face calls it; "" where nothing tells.
const char* name_of(bertcl::Task task) {
  static constexpr const char* names[] = {
      "",          "question-answering", "text-classification", "token-classification",
      "fill-mask", "feature-extraction"};
  static_assert(std::size(names) == static_cast<int>(bertcl::Task::feature_extraction) + 1);
  return names[static_cast<int>(task)];
}

nb::dict info(const bertcl::Session& session) {
  const bertcl::ModelInfo& model = session.info();
  nb::dict all;
  all["max_length"] = model.max_length;
  all["vocab_size"] = model.vocab_size;
  all["heads"] = model.heads;
  all["int8"] = model.int8;
  all["device"] = model.device;
  all["precision"] = name_of(model.precision);
  all["task"] = name_of(model.task);
  all["metadata"] = model.metadata;
  return all;
}

nb::dict model_settings(const bertcl::Session& session) {
  const bertcl::ModelSettings settings = [&] {
    LockReleased others_run;
    return bertcl::read_model_settings(session);
  }();
  nb::dict all;
  all["vocabulary"] = Path{settings.vocabulary.string()};
  all["truncates_left"] = settings.truncates_left;
  all["max_length"] = settings.max_length;
  all["classes"] = settings.classes;
  all["multi_label"] = settings.multi_label;
  all["is_regression"] = settings.is_regression;
  all["has_token_types"] = settings.has_token_types;
  all["cleans_up"] = settings.cleans_up;
  all["activation"] = settings.activation;
  all["mask_names"] = settings.mask_names;
  all["pad_names"] = settings.pad_names;
  all["pad_id"] = settings.pad_id;
  return all;
}

nb::dict embedding_settings(const Path& model) {
  const bertcl::EmbeddingSettings settings = [&] {
    LockReleased others_run;
    return bertcl::read_embedding_settings(model);
  }();
  nb::dict all;
  all["pooling"] = settings.pooling.kind;
  all["normalize"] = settings.pooling.normalize;
  all["dimensions"] = settings.pooling.dimensions;
  std::vector<Path> dense;
  for (const auto& folder : settings.pooling.dense) dense.push_back({folder.string()});
  all["dense"] = dense;
  all["max_length"] = settings.max_length;
  all["prompts"] = settings.prompts;
  all["default_prompt_name"] = settings.default_prompt_name;
  all["pools_prompt"] = settings.pools_prompt;
  all["scores_pairs"] = settings.scores_pairs;
  all["lower_case"] = settings.lower_case;
  all["similarity"] = settings.similarity;
  return all;
}

const char* name_of(bertcl::ErrorCode code) {
  static constexpr const char* names[] = {
      "invalid_argument", "invalid_file", "unsupported", "device", "out_of_memory", "io", "busy",
      "cancelled",        "internal"};  // from 1 on
  static_assert(std::size(names) == static_cast<int>(bertcl::ErrorCode::internal));
  return names[static_cast<int>(code) - 1];
}

/// bertcl.Error, whose attribute `code` is the name of the C++ exception's.
void bind_error(nb::module_& m) {
  const nb::exception<bertcl::Error> type(m, "Error", PyExc_RuntimeError);
  type.attr("code") = name_of(bertcl::ErrorCode::invalid_argument);  // of errors that Python raises
  const auto translate = [](const std::exception_ptr& thrown, void* type) {
    try {
      std::rethrow_exception(thrown);
    } catch (const bertcl::Error& error) {
      const std::string_view what = error.what();  // may name a file that is not valid Unicode
      const nb::object message = nb::steal(PyUnicode_DecodeUTF8(
          what.data(), static_cast<Py_ssize_t>(what.size()), "surrogateescape"));
      const nb::object raised = nb::borrow(static_cast<PyObject*>(type))(message);
      raised.attr("code") = name_of(error.code());
      PyErr_SetObject(static_cast<PyObject*>(type), raised.ptr());
    }
  };
  nb::register_exception_translator(translate, type.ptr());
}

}  // namespace

NB_MODULE(_bertcl, m) {
  m.attr("__version__") = bertcl::version();
  m.attr("max_requests") = bertcl::max_requests;
  bind_error(m);
  m.def("embedding_settings", &embedding_settings, "model"_a);
  m.def("model_settings", &model_settings, "session"_a);
  nb::class_<bertcl::Session>(m, "Session")
      .def("__init__", &load, "model"_a, "device"_a, "precision"_a, "requests"_a, "max_memory"_a,
           "require_int8"_a, "allow_nonfinite"_a, "pooling"_a.none(), "normalize"_a, "dimensions"_a,
           "or_own"_a, "dense"_a)
      .def("run", &run, "feeds"_a, "names"_a)
      .def("run_sequences", &run_sequences, "ids"_a, "token_type_ids"_a.none(), "offsets"_a,
           "names"_a)
      .def("inputs", [](const bertcl::Session& session) { return ports(session.info().inputs); })
      .def("outputs", [](const bertcl::Session& session) { return ports(session.info().outputs); })
      .def("info", &info);
  bind_evaluation(m);
  bind_quantization(m);
}
