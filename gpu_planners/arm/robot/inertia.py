"""Inertias of rigid bodies as pseudo-inertia matrices, which add up and move with their frames like poses.

A body of mass m, centre c and second moments S = int p p^T dm has the (4, 4) matrix J = [[S, m c], [m c^T, m]]
(Wensing, Kim, Slotine: Linear matrix inequalities for physically consistent inertial parameter identification, 2018).
In another frame it is T J T^T; that of several bodies is their sum. Its inertia is tr(S) 1 - S.
"""

import numpy as np

ROUNDED = 0.01  # share of the greatest principal moment by which moments in a file may be rounded


def pseudo_inertia(mass: float, inertia: np.ndarray, T: np.ndarray) -> np.ndarray:
    """(4, 4) of a body. inertia: (3, 3) about its centre, kg m^2; T: (4, 4) pose of the centre and of these axes, m"""
    J = np.zeros((4, 4))
    J[:3, :3], J[3, 3] = second_moments(inertia), mass
    return T @ J @ T.T


def second_moments(inertia: np.ndarray) -> np.ndarray:
    """(3, 3) tr(I)/2 1 - I. The same way leads back, but for the half: tr(S) 1 - S."""
    return np.trace(inertia) / 2 * np.eye(3) - inertia


def inertias_about_origin(J: np.ndarray) -> np.ndarray:
    """(N, 3, 3) inertias of bodies J (N, 4, 4) about the origin of their frame, kg m^2."""
    S = J[:, :3, :3]
    return np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S


def fault_of(mass: float, inertia: np.ndarray) -> str:
    """Why no body has this mass and inertia (3, 3); "" where one may have."""
    if not 0 <= mass < np.inf:
        return f"mass {mass:g} kg"
    if not np.isfinite(inertia).all():
        return "its inertia is not finite"
    moments = np.linalg.eigvalsh(inertia)
    told = ", ".join(f"{moment:.4g}" for moment in moments)
    if moments[0] < -ROUNDED * moments[2]:
        return f"a principal moment of its inertia is negative: {told} kg m^2"
    if moments[0] + moments[1] < (1 - ROUNDED) * moments[2]:
        return f"of its principal moments of inertia one is greater than the sum of the others: {told} kg m^2"
    return ""
