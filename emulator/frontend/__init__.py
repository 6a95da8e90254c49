"""From Python source to the IR."""

from .program import Signature, Specialised, signature, specialise

__all__ = ["Signature", "Specialised", "signature", "specialise"]
