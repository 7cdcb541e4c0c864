"""What a test run adds to a profile: nodes of tests, the parts of its workers, a summary."""
