"""MoveIt's messages, where moveit_msgs is installed: its action, services and topics around the arm node's scene."""
