// Asks a planner plugin of Nav2 for plans, for `python -m benchmarks --only nav2`, which says how to build it:
//   nav2_peer PLUGIN COSTS ROWS COLS RESOLUTION --ros-args --params-file FILE
// COSTS: ROWS x COLS bytes of nav2_costmap_2d's costs, the first row with the least y; the layers of the costmap's parameters, such as
// the inflation, are put over them. Each line of six numbers on the standard input, x y yaw of start and goal, is
// answered by a line: the seconds and the poses x y yaw of the path, or the seconds, "failed" and a text.
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

#include <nav2_core/global_planner.hpp>
#include <pluginlib/class_loader.hpp>
#include <rclcpp/rclcpp.hpp>

namespace
{
geometry_msgs::msg::PoseStamped pose_in(std::istream& numbers)
{
  geometry_msgs::msg::PoseStamped pose;
  double yaw = 0.0;
  numbers >> pose.pose.position.x >> pose.pose.position.y >> yaw;
  pose.header.frame_id = "map";
  pose.pose.orientation.z = std::sin(yaw / 2);
  pose.pose.orientation.w = std::cos(yaw / 2);
  return pose;
}
}  // namespace

int main(int argc, char** argv)
{
  const auto arguments = rclcpp::init_and_remove_ros_arguments(argc, argv);
  const auto rows = static_cast<unsigned>(std::stoul(arguments.at(3)));
  const auto cols = static_cast<unsigned>(std::stoul(arguments.at(4)));
  const auto node = std::make_shared<rclcpp_lifecycle::LifecycleNode>("planner");
  const auto costs = std::make_shared<nav2_costmap_2d::Costmap2DROS>("global_costmap");
  costs->on_configure(rclcpp_lifecycle::State());
  const auto layers = costs->getLayeredCostmap();
  layers->resizeMap(cols, rows, std::stod(arguments.at(5)), 0.0, 0.0);
  std::ifstream file(arguments.at(2), std::ios::binary);
  file.read(reinterpret_cast<char*>(costs->getCostmap()->getCharMap()), static_cast<std::streamsize>(rows) * cols);
  for (const auto& layer : *layers->getPlugins())
  {
    double low_x = 0.0, low_y = 0.0, high_x = 0.0, high_y = 0.0;
    layer->updateBounds(0.0, 0.0, 0.0, &low_x, &low_y, &high_x, &high_y);
    layer->updateCosts(*costs->getCostmap(), 0, 0, static_cast<int>(cols), static_cast<int>(rows));
  }

  pluginlib::ClassLoader<nav2_core::GlobalPlanner> loader("nav2_core", "nav2_core::GlobalPlanner");
  const auto planner = loader.createSharedInstance(arguments.at(1));
  planner->configure(node, "GridBased", costs->getTfBuffer(), costs);
  planner->activate();
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);)
  {
    std::istringstream numbers(line);
    const auto start = pose_in(numbers), goal = pose_in(numbers);
    std::ostringstream told;
    const auto began = std::chrono::steady_clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    try
    {
      const auto path = planner->createPlan(start, goal, [] { return false; });
      std::cout << seconds();
      for (const auto& each : path.poses)
        told << ' ' << each.pose.position.x << ' ' << each.pose.position.y << ' '
             << 2 * std::atan2(each.pose.orientation.z, each.pose.orientation.w);
    }
    catch (const std::exception& error)
    {
      std::cout << seconds();
      told << " failed " << error.what();
    }
    std::cout << told.str() << std::endl;
  }
  planner->deactivate();
  planner->cleanup();
  rclcpp::shutdown();
  return 0;
}
