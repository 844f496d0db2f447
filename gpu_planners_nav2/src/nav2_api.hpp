// What Nav2's releases name differently: Jazzy and Kilted have nav2_util's node and no poses on the way; later ones have
// nav2_ros_common's, and such poses.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nav2_core/global_planner.hpp>
#include <nav2_core/planner_exceptions.hpp>
#include <nav2_msgs/action/compute_path_to_pose.hpp>

namespace gpu_planners_nav2
{
using ComputePath = nav2_msgs::action::ComputePathToPose;
using Pose = geometry_msgs::msg::PoseStamped;
using Poses = std::vector<Pose>;
using CancelChecker = std::function<bool()>;

#if __has_include(<nav2_ros_common/lifecycle_node.hpp>)
#define GPU_PLANNERS_NAV2_VIAPOINTS 1
using Node = nav2::LifecycleNode;
using Transforms = nav2::TransformBuffer;
#else
#define GPU_PLANNERS_NAV2_VIAPOINTS 0
using Node = rclcpp_lifecycle::LifecycleNode;
using Transforms = tf2_ros::Buffer;
#endif

// Callers pass 0, which prefers the first one.
template <typename G>
auto set_viapoints(G& goal, const Poses& poses, int) -> decltype(goal.viapoints, void())
{
  goal.viapoints = poses;
}
template <typename G>
void set_viapoints(G&, const Poses&, long)
{
}
}  // namespace gpu_planners_nav2
