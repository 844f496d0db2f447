# make demo | test | test-all | bench | soundness | docs set everything up by themselves; `make setup` does only that.
#   PYTHON=python3.12   the Python to build .venv with (3.10 to 3.14)
#   ROS_DISTRO=kilted   the ROS 2 to put into .venv (jazzy or kilted); it stays until another one is named
#   ROS_PACKAGES=folder ROS packages that no package index has, to be built into .venv: launch, moveit_msgs
#   ARGS="..."          passed on, for instance: make test ARGS="-k collision -x"

PYTHON ?= python3
ARGS ?=
ROS_PACKAGES ?=
IN_VENV := .venv/bin/python
# Of a sourced workspace the variable says nothing about .venv: only the command line counts.
DISTRO := $(if $(filter command,$(firstword $(origin ROS_DISTRO))), --ros-distro $(ROS_DISTRO))

# .venv brings its own ROS 2: a sourced workspace, or a parent that runs in another such environment,
# must not leak into it. Of LD_LIBRARY_PATH only the driver's folders stay.
unexport CMAKE_PREFIX_PATH COLCON_PREFIX_PATH PYTHONPATH PYTHONHOME VIRTUAL_ENV
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE
unexport PYTHONDONTWRITEBYTECODE  # wheels come without bytecode
export AMENT_PREFIX_PATH := $(CURDIR)/.venv
empty :=
driver_folders := $(foreach folder,$(subst :, ,$(LD_LIBRARY_PATH)),\
  $(if $(findstring nvidia,$(folder))$(findstring cuda,$(folder)),$(folder)))
export LD_LIBRARY_PATH := $(subst $(empty) $(empty),:,$(strip $(driver_folders)))

.PHONY: help setup demo test test-all lint bench soundness docs wheel clean

help:
	@echo "make demo    plan through the real nodes: motions of a robot, paths of 10,000 agents, a fleet; draw them"
	@echo "make test    run the tests              (make test ARGS=\"-k collision\")"
	@echo "make test-all   these and the slow ones: colcon, wheels, Dask, browsers, the demo"
	@echo "make lint    check style and types: ruff, mypy"
	@echo "make bench   measure, with peers, into out/bench"
	@echo "make soundness   look for wrong answers (make soundness ARGS=\"--seconds 3600 --seed 1\")"
	@echo "make setup   only set up .venv          (make setup PYTHON=python3.12)"
	@echo "make docs    build the site, into out/docs; runs the tutorials and the gallery for its pictures"
	@echo "make wheel   make a wheel with compiled code in it, in dist/"
	@echo "make clean   remove .venv and everything built"

setup:
	@$(PYTHON) tools/setup_environment.py$(DISTRO)$(if $(ROS_PACKAGES), --ros-packages "$(ROS_PACKAGES)")

demo:
	@$(PYTHON) tools/setup_environment.py$(DISTRO) --demo
	@$(IN_VENV) -m gpu_planners.cli demo $(ARGS)

test: lint
	@$(IN_VENV) -m pytest -n auto --dist worksteal -m "not slow" $(ARGS)

test-all: lint
	@$(IN_VENV) -m pytest -n auto --dist worksteal $(ARGS)

lint: setup
	@$(IN_VENV) -m ruff check
	@$(IN_VENV) -m ruff format --check
	@$(IN_VENV) -m mypy

bench: setup
	@$(IN_VENV) -m gpu_planners.cli bench $(ARGS)

soundness: setup
	@$(IN_VENV) -m soundness $(ARGS)

docs: setup
	@$(IN_VENV) -m sphinx -W --keep-going -q -d out/doctrees docs out/docs $(ARGS)
	@echo "the site: out/docs/index.html"

wheel: setup
	@$(IN_VENV) tools/make_wheel.py

clean:
	rm -rf .venv build dist install log out .pytest_cache .hypothesis .ruff_cache *.egg-info
