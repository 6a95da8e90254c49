"""The command line and what it prints: reports on programs, benchmarks, papers and hardware."""
