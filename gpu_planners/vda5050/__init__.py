"""VDA 5050, versions 2.1 and 3.0: a fleet's planner as the fleet control of vehicles behind an MQTT broker."""
