"""What the backends of AMD GPUs share: where ROCm's libraries are, options, and what is found."""
