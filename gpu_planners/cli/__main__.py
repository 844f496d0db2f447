"""python -m gpu_planners.cli"""

from . import program

if __name__ == "__main__":
    program()
