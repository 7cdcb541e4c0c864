"""Studies of one claim each; they print tables for README.md."""
