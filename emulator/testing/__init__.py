"""What a test of kernels, or of an engine, can build on.

conformance: the suite that any engine can be held to. reference_interpreter: the IR run one thread at a time.
strategies: random kernels for Hypothesis, which is needed for that module alone. source_text: kernels from text.
"""
