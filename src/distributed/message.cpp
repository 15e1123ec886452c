#include "distributed/message.h"

#include <algorithm>

#include <fmt/format.h>

#include <dyad/error.h>

#include "base/stable_hash.h"
#include "serialization/safetensors.h"

namespace dyad {

std::string Message::to_bytes() const {
  Safetensors file;
  file.metadata = {{"dyad", type}, {"model", subject}};
  for (const auto& [name, values] : arrays)
    file.tensors[name] = make_tensor(values, {static_cast<Index>(values.size())});
  return file.to_bytes();
}

Message Message::from_bytes(const std::string& bytes, const std::string& type, const char* name) {
  const Safetensors file = Safetensors::from_bytes(bytes, name);
  const auto subject = file.metadata.find("model");
  const auto found_type = file.metadata.find("dyad");
  const auto is_double = [](const auto& named) { return named.second.dtype == dtype_of<double>(); };
  if (found_type == file.metadata.end() || found_type->second != type || subject == file.metadata.end() ||
      !std::all_of(file.tensors.begin(), file.tensors.end(), is_double))
    throw DataError(
        name, 0, 0,
        "these bytes are not a dyad message of the expected type; pass the bytes that dyad returned, unchanged");
  Message result{type, subject->second};
  for (const auto& [array, tensor] : file.tensors) result.arrays[array] = tensor_values<double>(tensor);
  return result;
}

std::string fingerprint(const std::string& bytes) { return fmt::format("{:016x}", stable_hash(bytes, 0)); }

}  // namespace dyad
