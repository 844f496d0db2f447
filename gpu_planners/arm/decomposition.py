"""Convex pieces that cover a mesh."""

from .shapes import ConvexShape


def convex_pieces(name, mesh, pose):
    return [ConvexShape.convex_hull(name, mesh.vertices, pose)]
