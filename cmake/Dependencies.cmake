# All of them are Debian packages; scripts/install-dependencies installs them.
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json REQUIRED)

find_package(ZLIB REQUIRED)
find_package(zstd REQUIRED)

# OpenBLAS picks its kernels for the processor at run time: a generic build is a fast one.
set(BLA_VENDOR OpenBLAS)
find_package(BLAS REQUIRED)
find_path(CBLAS_INCLUDE_DIR cblas.h REQUIRED PATH_SUFFIXES openblas openblas-pthread openblas-serial)
