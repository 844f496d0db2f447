"""Cost-to-go fields, and the map that they are planned on."""
