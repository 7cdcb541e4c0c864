"""Wing A: sessions, scopes and hooks in the process of the target, and the runner around it."""
