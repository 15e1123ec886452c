# scripts/install-dependencies installs the Debian packages of all dependencies.
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json REQUIRED)

set(ZLIB_USE_STATIC_LIBS ${DYAD_STATIC_DEPENDENCIES})
find_package(ZLIB REQUIRED)
find_package(zstd REQUIRED)

# OpenBLAS selects the kernels for the processor at run time, so that a generic build is fast on all processors.
set(BLA_VENDOR OpenBLAS)
set(BLA_STATIC ${DYAD_STATIC_DEPENDENCIES})
find_package(BLAS REQUIRED)
find_path(CBLAS_INCLUDE_DIR cblas.h REQUIRED PATH_SUFFIXES openblas openblas-pthread openblas-serial)

if(DYAD_STATIC_DEPENDENCIES)
  set(dyad_dependencies fmt::fmt-header-only BLAS::BLAS Threads::Threads ZLIB::ZLIB zstd::libzstd_static)
else()
  set(dyad_dependencies fmt::fmt BLAS::BLAS Threads::Threads ZLIB::ZLIB zstd::libzstd_shared)
endif()
