// Makes the precompiled headers of precompiled_headers.cmake.
