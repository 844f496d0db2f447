from .torques import InverseDynamics, Payload, TorqueLimits

__all__ = ["InverseDynamics", "Payload", "TorqueLimits"]
