"""Shared by the backends of AMD GPUs: ROCm's libraries, options and checks."""
