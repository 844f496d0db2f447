"""The judge of the League of Robot Runners 2023; benchmarks/judge/README.md has the command."""
