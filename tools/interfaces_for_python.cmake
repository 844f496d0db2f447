# Given to CMake as CMAKE_PROJECT_INCLUDE when building gpu_planners_msgs for the environment of `make setup`.
#
# Nodes in Python load the C type support alone: rclpy finds it through rosidl_typesupport_c, rmw_fastrtps_cpp writes and
# reads messages by that of Fast DDS, and describes their types to others by the introspection of C. So C++ messages are
# left out. Sources that all read the same headers are compiled together.

include(${CMAKE_CURRENT_LIST_DIR}/existing_include_folders.cmake)

find_package(rosidl_default_generators REQUIRED)  # once found, it registers no generator again
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:")

function(_gpu_planners_join_sources)
  set_target_properties(
    ${PROJECT_NAME}__rosidl_typesupport_fastrtps_c
    ${PROJECT_NAME}__rosidl_typesupport_introspection_c
    ${PROJECT_NAME}__rosidl_typesupport_c
    ${PROJECT_NAME}__rosidl_generator_py
    PROPERTIES UNITY_BUILD ON)
endfunction()

cmake_language(DEFER CALL _gpu_planners_join_sources)
