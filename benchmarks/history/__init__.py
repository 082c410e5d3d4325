"""The benchmarks that asv repeats for a range of commits; CONTRIBUTING.md shows how."""
