#!/usr/bin/env python3
"""URDF of a planar arm of n equal links, as in [BKF11]: `python make_planar_arm.py 9 > planar_arm.urdf`.

Each joint turns without end about z; the links are thin boxes in the plane z = 0. Like the paper's arm, links may
cross each other: load it with planar_arm.srdf, which disables every pair.
"""

import argparse


def planar_arm_urdf(links=9, length=0.1, thickness=0.01):
    """URDF text. links: how many; length: of one link, metres; thickness: of a link's square section, metres."""
    if links < 1 or not length > 0 or not thickness > 0:
        raise ValueError(f"links must be at least 1, length and thickness above 0, got {links}, {length}, {thickness}")
    lines = [
        '<?xml version="1.0"?>',
        f"<!-- Planar arm of {links} links, written by make_planar_arm.py; metres -->",
        '<robot name="planar_arm">',
        '  <link name="base_link"/>',
    ]
    for i in range(1, links + 1):
        parent, x = ("base_link", 0) if i == 1 else (f"link{i - 1}", length)
        lines += [
            f'  <joint name="joint{i}" type="continuous">',
            f'    <parent link="{parent}"/>',
            f'    <child link="link{i}"/>',
            f'    <origin xyz="{x:g} 0 0"/>',
            '    <axis xyz="0 0 1"/>',
            '    <limit velocity="1" effort="1"/>',
            "  </joint>",
            f'  <link name="link{i}">',
            "    <collision>",
            f'      <origin xyz="{length / 2:g} 0 0"/>',
            f'      <geometry><box size="{length:g} {thickness:g} {thickness:g}"/></geometry>',
            "    </collision>",
            "  </link>",
        ]
    return "\n".join([*lines, "</robot>", ""])


def planar_arm_srdf(links=9):
    """SRDF text that disables all collisions between links."""
    names = [f"link{i}" for i in range(1, links + 1)]
    pairs = [
        f'  <disable_collisions link1="{a}" link2="{b}" reason="User"/>'
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]
    return "\n".join(['<?xml version="1.0"?>', '<robot name="planar_arm">', *pairs, "</robot>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("links", type=int)
    parser.add_argument("--length", type=float, default=0.1, help="of one link, metres")
    parser.add_argument("--thickness", type=float, default=0.01, help="metres")
    parser.add_argument("--srdf", action="store_true", help="print the SRDF that disables self-collisions instead")
    args = parser.parse_args()
    text = planar_arm_srdf(args.links) if args.srdf else planar_arm_urdf(args.links, args.length, args.thickness)
    print(text, end="")


if __name__ == "__main__":
    main()
