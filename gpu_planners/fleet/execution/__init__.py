"""A fleet that runs: what robots report, what they have done, what they are told. It knows neither ROS nor MQTT."""
