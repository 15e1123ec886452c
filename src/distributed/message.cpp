#include "distributed/message.h"

#include <algorithm>

#include <fmt/format.h>

#include <dyad/data_error.h>

#include "base/stable_hash.h"
#include "serialization/safetensors.h"

namespace dyad {

std::string Message::to_bytes() const {
  Safetensors file;
  file.metadata = {{"dyad", sort}, {"model", about}};
  for (const auto& [name, numbers] : arrays)
    file.tensors[name] = make_tensor(numbers, {static_cast<Index>(numbers.size())});
  return file.to_bytes();
}

Message Message::from_bytes(const std::string& bytes, const std::string& sort, const char* name) {
  const Safetensors file = Safetensors::from_bytes(bytes, name);
  const auto about = file.metadata.find("model");
  const auto kind = file.metadata.find("dyad");
  const auto is_known = [](const auto& named) { return named.second.dtype == dtype_of<double>(); };
  if (kind == file.metadata.end() || kind->second != sort || about == file.metadata.end() ||
      !std::all_of(file.tensors.begin(), file.tensors.end(), is_known))
    throw DataError(name, 0, 0, fmt::format("this is no {}; expected what dyad has made for it", sort));
  Message result{sort, about->second};
  for (const auto& [array, tensor] : file.tensors) result.arrays[array] = numbers_of<double>(tensor);
  return result;
}

std::string fingerprint(const std::string& bytes) { return fmt::format("{:016x}", stable_hash(bytes, 0)); }

}  // namespace dyad
