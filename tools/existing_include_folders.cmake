# Given to CMake as CMAKE_PROJECT_INCLUDE when building against the ROS 2 wheels of the package index.
#
# The wheels' exported targets name an include folder of the machine that built them
# (/opt/python/cp3XX-.../include/python3.XX). CMake stops at an include folder that does not exist, so at
# the end of each directory such folders are dropped from its imported targets. The right folder comes
# from find_package(Python3), which the interface generator calls itself.

function(_gpu_planners_drop_missing_include_folders)
  get_directory_property(targets IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT folders)
      continue()
    endif()
    set(existing)
    foreach(folder IN LISTS folders)
      # A generator expression is not a path yet: leave it alone.
      if(folder MATCHES "^\\$<" OR EXISTS "${folder}")
        list(APPEND existing "${folder}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${existing}")
  endforeach()
endfunction()

cmake_language(DEFER CALL _gpu_planners_drop_missing_include_folders)
