"""What a target's launches would cost otherwise: the observer, the options' values, the report."""
