# The release of RocksDB that -DTALLY_ROCKSDB=source takes, and where it is built. crates.io keeps each release for good, as one archive with the whole source.
set(rocksdb_pinned 11.8.1)
set(rocksdb_url "https://static.crates.io/crates/librocksdb-sys/librocksdb-sys-0.19.0+${rocksdb_pinned}.crate")
set(rocksdb_sha256 4f45e86edad8e88efe97dbf384b4e48e1ff0f111eabf154c7b09d7a1e5fb573c)
cmake_path(SET rocksdb_prefix NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../build/rocksdb-${rocksdb_pinned}")
