"""The front end: from Python source to the IR."""

from .reader import Signature, Specialised, signature, specialise

__all__ = ["Signature", "Specialised", "signature", "specialise"]
